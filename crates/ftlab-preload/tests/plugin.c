/* A plug-in that hands a write to the kernel by a library of its own: tests/promises.rs makes both of this file, the library with
   LIBRARY set to the way in which it makes the system call. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef LIBRARY
int io_submit(aio_context_t context, long count, struct iocb **blocks) {
#if LIBRARY == 1
    long done = syscall(SYS_io_submit, context, count, blocks);
    return done < 0 ? -errno : done;
#else
    long done;
    asm volatile("syscall" : "=a"(done) : "a"(SYS_io_submit), "D"(context), "S"(count), "d"(blocks) : "rcx", "r11", "memory");
    return done;
#endif
}
#else
int io_submit(aio_context_t context, long count, struct iocb **blocks);
static char page[4096] __attribute__((aligned(4096)));

int run(void) {
    aio_context_t context = 0;
    struct iocb block = {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_buf = (unsigned long)page, .aio_nbytes = 4096, .aio_offset = 8192};
    struct iocb *blocks[] = {&block};
    struct io_event event;
    memset(page, 7, sizeof page);
    block.aio_fildes = open("a", O_RDWR | O_CREAT, 0644);
    if (syscall(SYS_io_setup, 8, &context)) return 1;
    for (int i = 0; i < 3; i++) {
        if (io_submit(context, 1, blocks) != 1) return 2;
        if (syscall(SYS_io_getevents, context, 1, 1, &event, NULL) != 1 || event.res != 4096) return 3;
    }
    /* An error is the negated number, as ever. */
    return io_submit(0, 1, blocks) == -EINVAL ? 0 : 4;
}
#endif
