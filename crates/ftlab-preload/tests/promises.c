/* Programs that a recorder harms, or loses in silence, if it is not careful: `promises CASE`, run by tests/promises.rs. Each checks
   for itself that it was not disturbed, and ends with 0 if so. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { dprintf(2, "line %d: %s\n", __LINE__, #what); _exit(99); } } while (0)

static char page[4096] __attribute__((aligned(4096)));

static int file(const char *name, int flags) {
    int fd = open(name, O_RDWR | O_CREAT | flags, 0644);
    CHECK(fd >= 0);
    return fd;
}

/* A system call by an instruction of the program's own. */
static long own(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
    long done;
    asm volatile("syscall" : "=a"(done) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return done;
}

/* A plug-in of its own, which brings a library that only it can see. */
static void plugin(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) dprintf(2, "%s\n", dlerror());
    CHECK(library);
    int (*run)(void) = dlsym(library, "run");
    CHECK(run && run() == 0);
}

/* Temporary files, each made permanent by a sync of the folder. */
static void temporary(void) {
    for (int i = 0; i < 10; i++) {
        char name[] = "tmpXXXXXX", last[20];
        int fd = mkstemp(name);
        CHECK(fd >= 0 && write(fd, page, 100 + i) == 100 + i && fsync(fd) == 0 && close(fd) == 0);
        sprintf(last, "file%d", i);
        CHECK(rename(name, last) == 0);
        DIR *folder = opendir(".");
        CHECK(folder && fsync(dirfd(folder)) == 0 && closedir(folder) == 0);
    }
}

static void strict(void) {
    int fd = file("a", 0);
    CHECK(write(fd, page, 10) == 10);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    CHECK(write(fd, page, 20) == 20);
    syscall(SYS_exit, 0);
}

/* Everything but reading, writing and ending kills, or everything but one call is allowed. */
static void filtered(int kills, int by_number) {
    struct sock_filter only[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_filter most[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {kills ? 6 : 4, kills ? only : most};
    int fd = file("a", 0);
    CHECK(write(fd, page, 10) == 10);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (by_number) CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
    else CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    for (int i = 0; i < 5000; i++) CHECK(write(fd, page, 20) == 20);
    CHECK(fsync(fd) == 0);
    _exit(0);
}

/* Starts itself to write 100 bytes, with an environment that has nothing of the recording, or other libraries. */
static void changed(char *self, int way) {
    char *arguments[] = {self, "hundred", NULL}, *other[] = {"LD_PRELOAD=libdl.so.2", NULL}, command[5000];
    snprintf(command, sizeof command, "%s hundred", self);
    if (way != 3) clearenv();
    switch (way) {
    case 0: execv(self, arguments); break;
    case 1: execvp(self, arguments); break;
    case 2: execl(self, self, "hundred", NULL); break;
    case 3: execve(self, arguments, other); break;
    case 4: CHECK(system(command) == 0 && clearenv() == 0); _exit(0);
    case 5: CHECK(pclose(popen(command, "r")) == 0); _exit(0);
    case 6: execle(self, self, "hundred", NULL, other); break;
    case 7: execve(self, arguments, NULL); break;
    case 8: execlp(self, self, "hundred", NULL); break;
    }
    _exit(98);
}

static void hundred(void) {
    int fd = file("one", O_APPEND);
    CHECK(write(fd, page, 100) == 100);
}

static void full_table(int all) {
    int fd = file("a", 0);
    struct rlimit limit = {64, all ? 64 : 128}, now;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (dup(fd) >= 0) {}
    CHECK(errno == EMFILE && write(fd, page, 10) == 10);
    CHECK(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 64);
    errno = 0;
    CHECK(dup(fd) == -1 && errno == EMFILE);
}

static void another_root(void) {
    mkdir("root", 0700);
    int fd = file("a", 0);
    CHECK(chroot("root") == 0 && chdir("/") == 0 && write(fd, page, 10) == 10);
    if (fork() == 0) {
        CHECK(write(fd, page, 20) == 20);
        _exit(0);
    }
    int status;
    CHECK(wait(&status) > 0 && status == 0);
}

static void past(void) {
    int fd = file("a", 0);
    CHECK(write(fd, page, 10) == 10);
    CHECK(own(SYS_write, fd, (long)page, 1000, 0, 0, 0) == 1000);
}

/* A ring of 8 entries: the queue and the entries are mapped here. */
static struct { int fd; unsigned *head, *tail, *mask, *array; struct io_uring_sqe *entries; } ring;

static int ring_made(int entries, int by_itself) {
    struct io_uring_params parameters = {0};
    ring.fd = by_itself ? own(SYS_io_uring_setup, entries, (long)&parameters, 0, 0, 0, 0)
                        : syscall(SYS_io_uring_setup, entries, &parameters);
    if (ring.fd < 0) return 0;
    size_t len = parameters.sq_off.array + parameters.sq_entries * 4 + 4096;
    char *queue = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
    ring.entries = mmap(NULL, parameters.sq_entries * 64, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
    CHECK(queue != MAP_FAILED && ring.entries != MAP_FAILED);
    ring.head = (unsigned *)(queue + parameters.sq_off.head);
    ring.tail = (unsigned *)(queue + parameters.sq_off.tail);
    ring.mask = (unsigned *)(queue + parameters.sq_off.ring_mask);
    ring.array = (unsigned *)(queue + parameters.sq_off.array);
    return 1;
}

static void put(int code, int flags, int fd, long offset, long address, int len) {
    unsigned tail = *ring.tail, place = tail & *ring.mask;
    struct io_uring_sqe *entry = &ring.entries[place];
    memset(entry, 0, sizeof *entry);
    entry->opcode = code;
    entry->flags = flags;
    entry->fd = fd;
    entry->off = offset;
    entry->addr = address;
    entry->len = len;
    ring.array[place] = place;
    __atomic_store_n(ring.tail, tail + 1, __ATOMIC_RELEASE);
}

static void rings(int by_itself) {
    int fd = file("a", 0);
    struct iovec pieces[2] = {{page, 1000}, {page, 3096}};
    memset(page, 7, sizeof page);
    if (by_itself < 2) CHECK(write(fd, page, 1) == 1);
    /* Where rings are forbidden there is nothing to tell. */
    if (!ring_made(8, by_itself > 1)) { CHECK(ftruncate(fd, 1) == 0); return; }
    for (int round = 0; round < 3; round++) {
        put(IORING_OP_WRITE, 0, fd, 4096 * (2 * round), (long)page, 4096);
        put(IORING_OP_WRITEV, IOSQE_IO_LINK, fd, 4096 * (2 * round + 1), (long)pieces, 2);
        put(IORING_OP_FSYNC, 0, fd, 0, 0, 0);
        put(IORING_OP_NOP, 0, -1, 0, 0, 0);
        long done = by_itself ? own(SYS_io_uring_enter, ring.fd, 4, 4, IORING_ENTER_GETEVENTS, 0, 0)
                              : syscall(SYS_io_uring_enter, ring.fd, 4, 4, IORING_ENTER_GETEVENTS, NULL, 0);
        CHECK(done == 4);
    }
    if (by_itself > 1) CHECK(munmap(ring.head, 4096) == 0);
    if (!by_itself) {
        int files[2] = {-1, fd};
        CHECK(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, files, 2) == 0);
        put(IORING_OP_WRITE, IOSQE_FIXED_FILE, 1, 100, (long)page, 50);
        CHECK(syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
    }
    CHECK(close(ring.fd) == 0);
}

/* Stores through mappings that end in different ways. Files of 8 pages; `b` has data in page 2. */
static void stores(void) {
    int fd = file("a", 0), other = file("b", 0), third = file("c", 0);
    CHECK(ftruncate(fd, 32768) == 0 && ftruncate(other, 32768) == 0 && ftruncate(third, 32768) == 0);
    CHECK(pwrite(other, "old", 3, 8192) == 3);
    char *a = mmap(NULL, 32768, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *b = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, other, 8192);
    char *c = mmap(NULL, 32768, PROT_READ, MAP_SHARED, third, 0);
    CHECK(a != MAP_FAILED && b != MAP_FAILED && c != MAP_FAILED);
    CHECK(lseek(fd, 0, SEEK_CUR) == 0);
    close(fd);
    close(other);
    close(third);
    a[0] = a[4096] = a[5 * 4096] = 1;
    CHECK(msync(a, 8192, MS_ASYNC) == 0);
    a[4097] = 2;
    CHECK(munmap(a, 8192) == 0);
    /* The same again, and what was there: no change. */
    memcpy(b, "old", 3);
    b[4096] = 3;
    CHECK(mprotect(c, 32768, PROT_READ | PROT_WRITE) == 0);
    c[3 * 4096] = 4;
    c = mremap(c, 32768, 16384, MREMAP_MAYMOVE);
    CHECK(c != MAP_FAILED);
    c[0] = 5;
    /* One that cannot be read. */
    int fourth = file("d", 0);
    CHECK(ftruncate(fourth, 8192) == 0);
    char *d = mmap(NULL, 8192, PROT_WRITE, MAP_SHARED, fourth, 0);
    CHECK(d != MAP_FAILED);
    d[4096] = 6;
}

/* Children store into a mapping of their parent's: one page each, and all into the last; they end in different ways. */
static void inherited(void) {
    int fd = file("a", 0);
    CHECK(ftruncate(fd, 8 * 4096) == 0);
    char *a = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(a != MAP_FAILED && close(fd) == 0);
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        if (child == 0) {
            a[i * 4096] = 1 + i;
            switch (i) {
            case 0: _exit(0);
            case 1: exit(0);
            case 2: CHECK(msync(a, 8 * 4096, MS_SYNC) == 0); _exit(0);
            case 3: CHECK(munmap(a, 8 * 4096) == 0); _exit(0);
            case 4: execl("/bin/true", "true", NULL); _exit(1);
            case 5: if (fork() == 0) { a[7 * 4096] = 9; _exit(0); } wait(NULL); quick_exit(0);
            }
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    a[6 * 4096] = a[0] = 7;
    CHECK(munmap(a, 8 * 4096) == 0);
}

/* A mapping is replaced by another at its place; the program ends past what runs at `exit`. */
static void replaced(void) {
    int fd = file("a", 0);
    CHECK(ftruncate(fd, 16384) == 0);
    char *a = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    a[4096] = 1;
    CHECK(mmap(a, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == a);
    a[0] = 1;
    char *b = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    b[8192] = 2;
    CHECK(mremap(a, 16384, 16384, MREMAP_MAYMOVE | MREMAP_FIXED, b) == b);
    char *c = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    c[12288] = 3;
    quick_exit(0);
}

/* A mapping outlives the descriptor and the last name of its file. */
static void unnamed(void) {
    int fd = file("a", 0), other = file("b", 0);
    CHECK(ftruncate(fd, 8192) == 0 && ftruncate(other, 8192) == 0);
    char *a = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *b = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
    CHECK(a != MAP_FAILED && b != MAP_FAILED && close(fd) == 0 && close(other) == 0);
    CHECK(unlink("a") == 0 && close(file("c", 0)) == 0 && rename("c", "b") == 0);
    a[0] = b[4096] = 1;
    CHECK(msync(a, 8192, MS_SYNC) == 0 && msync(b, 8192, MS_SYNC) == 0);
    CHECK(munmap(a, 8192) == 0 && munmap(b, 8192) == 0);
}

/* A daemon: the first process ends, and its grandchild writes later. */
static void daemonized(void) {
    int fd = file("a", 0);
    CHECK(write(fd, page, 10) == 10);
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            usleep(300000);
            CHECK(write(fd, page, 20) == 20);
            _exit(0);
        }
        _exit(0);
    }
}

/* The first use of each descriptor is a write at an offset, which the kernel does not heed: it appends. */
static void appended(void) {
    int fd = file("a", 0);
    struct iovec piece = {page, 4096};
    CHECK(write(fd, page, 100) == 100);
    CHECK(pwrite(file("a", O_APPEND), page, 4096, 0) == 4096);
    CHECK(pwrite64(file("a", O_APPEND), page, 4096, 0) == 4096);
    CHECK(pwritev(file("a", O_APPEND), &piece, 1, 0) == 4096);
    CHECK(pwritev2(file("a", O_APPEND), &piece, 1, 0, 0) == 4096);
    CHECK(syscall(SYS_pwrite64, file("a", O_APPEND), page, 4096, 0) == 4096);
    CHECK(pwritev2(fd, &piece, 1, 0, RWF_APPEND) == 4096);
    CHECK(lseek(fd, 0, SEEK_END) == 100 + 6 * 4096);
}

static void bytes(void) {
    int fd = file("a", 0);
    for (int i = 0; i < 10000; i++) CHECK(write(fd, page, 1) == 1);
    CHECK(fsync(fd) == 0);
    CHECK(pwrite(fd, page, 1, 0) == 1);
}

int main(int count, char **arguments) {
    CHECK(count >= 2);
    const char *name = arguments[1];
#define CASE(text, call) if (!strcmp(name, text)) { call; return 0; }
    CASE("plugin", plugin(arguments[2]))
    CASE("temporary", temporary())
    CASE("strict", strict())
    CASE("kills", filtered(1, 0))
    CASE("kills_by_number", filtered(1, 1))
    CASE("allows", filtered(0, 1))
    CASE("changed", changed(arguments[0], atoi(arguments[2])))
    CASE("hundred", hundred())
    CASE("full_table", full_table(0))
    CASE("full_table_all", full_table(1))
    CASE("another_root", another_root())
    CASE("past", past())
    CASE("rings", rings(0))
    CASE("own_rings", rings(1))
    CASE("ended_rings", rings(2))
    CASE("stores", stores())
    CASE("inherited", inherited())
    CASE("replaced", replaced())
    CASE("unnamed", unnamed())
    CASE("daemonized", daemonized())
    CASE("bytes", bytes())
    CASE("appended", appended())
    return 97;
}
