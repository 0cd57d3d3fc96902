/* Programs that are recorded by tests/recorded.rs: `programs CASE`, in an empty folder. Each checks for itself that it was not
   disturbed, and ends with 0 if so. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { dprintf(2, "line %d: %s\n", __LINE__, #what); _exit(99); } } while (0)

static char page[4096];

static int file(const char *name, int flags) {
    int fd = open(name, O_RDWR | O_CREAT | flags, 0644);
    CHECK(fd >= 0);
    return fd;
}

/* Every kind of call, each at a place the test knows. */
static void calls(void) {
    int fd = file("a", O_TRUNC);
    struct iovec pieces[2] = {{page, 100}, {page, 28}};
    CHECK(write(fd, page, 4096) == 4096);
    CHECK(write(fd, page, 10) == 10);
    CHECK(pwrite(fd, page, 20, 8192) == 20);
    CHECK(writev(fd, pieces, 2) == 128);
    CHECK(pwritev(fd, pieces, 2, 5000) == 128);
    CHECK(pwritev2(fd, pieces, 2, 6000, RWF_DSYNC) == 128);
    CHECK(fsync(fd) == 0 && fdatasync(fd) == 0);
    CHECK(sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE) == 0);
    CHECK(ftruncate(fd, 3000) == 0);
    CHECK(posix_fallocate(fd, 0, 10000) == 0);
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096) == 0);
    CHECK(syscall(SYS_pwrite64, fd, page, 30, 7000) == 30);
    int copy = dup2(fd, 50);
    CHECK(copy == 50 && pwrite(copy, page, 40, 9000) == 40);
    close(copy);
    close(fd);

    int end = file("b", O_APPEND);
    CHECK(write(end, page, 50) == 50);
    CHECK(pwrite(end, page, 60, 0) == 60);
    int from = file("a", 0);
    CHECK(sendfile(end, from, NULL, 70) == -1 || 1);
    close(end);

    int into = file("c", 0);
    off_t at = 0;
    CHECK(copy_file_range(from, &at, into, NULL, 1000, 0) == 1000);
    close(into);
    close(from);

    FILE *stream = fopen("d", "w");
    CHECK(stream && fprintf(stream, "%d and %s\n", 12, "more") == 12 && fputs("rest\n", stream) >= 0);
    CHECK(fclose(stream) == 0);

    CHECK(rename("c", "d") == 0);
    CHECK(link("d", "e") == 0 && unlink("d") == 0 && unlink("e") == 0);
    CHECK(truncate("a", 5) == 0);
    close(open("a", O_WRONLY | O_TRUNC));
    stream = fopen("f", "w");
    CHECK(stream && fputs("flushed at exit\n", stream) >= 0);
}

/* Write-lifetime hints of a file, before and between its writes; one that there is not, and one that is not there. */
static void hints(void) {
    enum { SET = 1036, SET_OF_DESCRIPTOR = 1038 };
    int a = file("a", 0), b = file("b", 0);
    uint64_t hint = 2, wrong = 9;
    CHECK(fcntl(a, SET, &hint) == 0);
    CHECK(write(a, page, 4096) == 4096);
    hint = 5;
    CHECK(syscall(SYS_fcntl, a, SET, &hint) == 0);
    CHECK(write(a, page, 4096) == 4096);
    CHECK(fcntl(a, SET, &wrong) == -1 && errno == EINVAL);
    CHECK(fcntl(a, SET, NULL) == -1 && errno == EFAULT);
    CHECK(write(b, page, 4096) == 4096);
    /* Linux refuses it since 5.17. */
    if (fcntl(b, SET_OF_DESCRIPTOR, &hint) == -1) CHECK(errno == EINVAL);
}

static void forked(void) {
    int fd = file("a", 0);
    CHECK(write(fd, page, 100) == 100);
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            CHECK(pwrite(fd, page, 10, 1000 * (i + 1)) == 10);
            exit(0);
        }
    }
    /* A child made past the C library. */
    if (syscall(SYS_fork) == 0) {
        CHECK(pwrite(fd, page, 10, 4000) == 10);
        _exit(0);
    }
    for (int status; wait(&status) > 0;) CHECK(status == 0);
    CHECK(pwrite(fd, page, 100, 5000) == 100);
}

static void executed(char *self) {
    char *arguments[] = {self, "one", NULL}, *environment[] = {"A=b", NULL};
    int fd = file("before", 0);
    CHECK(write(fd, page, 7) == 7);
    if (vfork() == 0) {
        execve(self, arguments, environment);
        _exit(98);
    }
    int status;
    CHECK(wait(&status) > 0 && status == 0);
    CHECK(write(fd, page, 7) == 7);
    /* Without a valid program the exec fails as ever. */
    errno = 0;
    CHECK(execve("/nonexistent", arguments, environment) == -1 && errno == ENOENT);
    execve(self, arguments, environment);
    _exit(98);
}

/* Starts a program that gives back the number of its arguments, in every way there is. */
static void started(char *program) {
    char *three[] = {program, "b", "c", NULL}, *environment[] = {"A=b", NULL};
    const char *name = strrchr(program, '/') + 1;
    char folder[4096], path[4200];
    snprintf(folder, sizeof folder, "%.*s", (int)(name - program - 1), program);
    snprintf(path, sizeof path, "/nonexistent:%s:/bin", folder);
    setenv("PATH", path, 1);
    for (int way = 0; way < 12; way++) {
        pid_t child;
        if (way == 10) CHECK(posix_spawn(&child, program, NULL, NULL, three, environment) == 0);
        else if (way == 11) CHECK(posix_spawnp(&child, name, NULL, NULL, three, environment) == 0);
        else if ((child = fork()) == 0) {
            switch (way) {
            case 0: execv(program, three); break;
            case 1: execvp(program, three); break;
            case 2: execvp(name, three); break;
            case 3: execve(program, three, environment); break;
            case 4: execvpe(name, three, environment); break;
            case 5: fexecve(open(program, O_RDONLY), three, environment); break;
            case 6: execl(program, program, "b", "c", "d", "e", "f", "g", "h", "i", NULL); break;
            case 7: execlp(name, program, "b", "c", "d", "e", "f", "g", "h", "i", NULL); break;
            case 8: execle(program, program, "b", "c", "d", "e", "f", "g", "h", "i", NULL, environment); break;
            case 9: syscall(SYS_execve, program, three, environment); break;
            }
            _exit(98);
        }
        int status, wanted = way >= 6 && way <= 8 ? 9 : 3;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == wanted);
    }
    /* None of these is a program that cannot be recorded. */
    errno = 0;
    CHECK(execl("/nonexistent", "a", NULL) == -1 && errno == ENOENT);
    CHECK(execlp("nonexistent", "a", NULL) == -1 && errno == ENOENT);
    CHECK(execv("/", three) == -1 && errno == EACCES);
    CHECK(execve((char *)8, three, environment) == -1 && errno == EFAULT);
    execlp("true", "true", NULL);
    _exit(98);
}

static void one(void) {
    CHECK(getenv("A") && !strcmp(getenv("A"), "b"));
    int fd = file("one", O_APPEND);
    CHECK(write(fd, page, 100) == 100);
}

static void *writer(void *number) {
    char name[20];
    sprintf(name, "t%ld", (long)number);
    int fd = file(name, 0);
    for (int i = 0; i < 1000; i++) CHECK(pwrite(fd, page, 10, 10 * i) == 10);
    close(fd);
    return NULL;
}

static void threads(void) {
    pthread_t all[8];
    for (long i = 0; i < 8; i++) CHECK(pthread_create(&all[i], NULL, writer, (void *)i) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

static void small_stack(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, 16384) == 0);
    CHECK(pthread_create(&thread, &attributes, writer, (void *)0) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void killed(void) {
    int fd = file("a", 0);
    for (int i = 0; i < 5000; i++) CHECK(pwrite(fd, page, 10, 10 * i) == 10);
    kill(getpid(), SIGKILL);
}

/* The limit holds for the spool too, which must stop before it raises SIGXFSZ. */
static void no_room(void) {
    struct rlimit limit = {200 << 10, 200 << 10};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    int fd = file("a", 0);
    for (int i = 0; i < 20000; i++) CHECK(pwrite(fd, page, 10, 0) == 10);
}

static void endless(void) {
    int fd = file("a", 0);
    for (int i = 0; i < 200000; i++) CHECK(pwrite(fd, page, 10, 0) == 10);
}

static void many_descriptors(void) {
    closefrom(3);
    int fd = file("a", 0), last = fd;
    for (int i = 0, next; i < 200000 && (next = dup(fd)) >= 0; i++) {
        CHECK(next == last + 1);
        last = next;
    }
    CHECK(errno == EMFILE);
    CHECK(pwrite(last, page, 10, 0) == 10);
    /* Our own descriptors are none of the program's. */
    close(last);
    CHECK(dup(fd) == last);
    closefrom(fd + 1);
    CHECK(pwrite(fd, page, 11, 0) == 11);
    int next = file("b", 0);
    CHECK(next == fd + 1 && write(next, page, 12) == 12);
}

static void *blocked(void *fd) {
    char large[1 << 16];
    memset(large, 0, sizeof large);
    for (;;) write(*(int *)fd, large, sizeof large);
    return NULL;
}

static void cancelled(void) {
    int pipes[2];
    pthread_t thread;
    void *result;
    CHECK(pipe(pipes) == 0 && pthread_create(&thread, NULL, blocked, &pipes[1]) == 0);
    usleep(20000);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    int fd = file("a", 0);
    CHECK(write(fd, page, 10) == 10);
}

static int handler_fd;
static volatile long handled;

static void handler(int signal) {
    (void)signal;
    int before = errno;
    if (pwrite(handler_fd, page, 1, 0) == 1) handled++;
    errno = before;
}

static void interrupted(void) {
    struct itimerval often = {{0, 100}, {0, 100}};
    handler_fd = file("signal", 0);
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, NULL);
    int fd = file("a", 0);
    for (int i = 0; i < 200000; i++) CHECK(pwrite(fd, page, 2, 0) == 2);
    memset(&often, 0, sizeof often);
    setitimer(ITIMER_REAL, &often, NULL);
    /* For the test: how often the handler wrote. */
    CHECK(ftruncate(fd, handled) == 0);
}

static void errors(void) {
    errno = 77;
    int fd = file("a", 0);
    CHECK(write(fd, page, 10) == 10 && fsync(fd) == 0 && pwrite(fd, page, 10, 0) == 10 && errno == 77);
    CHECK(write(-1, page, 1) == -1 && errno == EBADF);
    errno = 0;
    CHECK(write(fd, (void *)8, 100) == -1 && errno == EFAULT);
    errno = 0;
    CHECK(unlink("nothing") == -1 && errno == ENOENT);
    errno = 0;
    CHECK(open((char *)8, O_WRONLY | O_TRUNC) == -1 && errno == EFAULT);
    errno = 0;
    CHECK(rename("nothing", (char *)8) == -1 && (errno == EFAULT || errno == ENOENT));
    int reader = open("a", O_RDONLY);
    errno = 0;
    CHECK(write(reader, page, 1) == -1 && errno == EBADF);
    close(reader);
    CHECK(close(reader) == -1 && errno == EBADF);
    /* Another file under the same number. */
    int next = file("b", 0);
    CHECK(next == reader && write(next, page, 11) == 11);
}

static void content(void) {
    int fd = file("a", 0), other = open("b", O_WRONLY | O_CREAT, 0644);
    memset(page, 7, sizeof page);
    CHECK(write(fd, page, 4096) == 4096);
    /* The same page in three pieces, through a descriptor that cannot read. */
    CHECK(write(other, page, 1000) == 1000 && write(other, page, 3000) == 3000 && write(other, page, 96) == 96);
}

static void mapped(void) {
    int fd = file("a", 0);
    CHECK(ftruncate(fd, 16384) == 0);
    char *memory = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    memory[5000] = 1;
    CHECK(msync(memory + 4096, 4096, MS_SYNC) == 0 && munmap(memory, 16384) == 0);
}

/* Writes on a stack for signals, as small as they get. */
static void alternate_stack(void) {
    stack_t stack = {.ss_size = SIGSTKSZ, .ss_sp = malloc(SIGSTKSZ + 4096)};
    char *guard = stack.ss_sp;
    memset(guard, 0x5a, 4096);
    stack.ss_sp = guard + 4096;
    CHECK(sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    handler_fd = file("signal", 0);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 10; i++) raise(SIGUSR1);
    for (int i = 0; i < 4096; i++) CHECK(guard[i] == 0x5a);
    CHECK(handled == 10);
}

static ucontext_t here, coroutine;

static void on_coroutine(void) {
    int fd = file("a", 0);
    for (int i = 0; i < 10; i++) {
        CHECK(pwrite(fd, page, 10, i) == 10);
        swapcontext(&coroutine, &here);
    }
    FILE *stream = fopen("b", "w");
    CHECK(stream && fputs("text", stream) >= 0 && fclose(stream) == 0);
}

static void coroutines(void) {
    static char stack[32768];
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = sizeof stack;
    coroutine.uc_link = &here;
    makecontext(&coroutine, on_coroutine, 0);
    for (int i = 0; i < 11; i++) CHECK(swapcontext(&here, &coroutine) == 0);
}

/* Its room is what the calls before it left on the stack. */
__attribute__((noinline)) static void with_room(int fd) {
    volatile char room[1500];
    room[0] = 1;
    CHECK(write(fd, page, 10) == 10);
}

static void remains(void) {
    int fd = file("a", 0);
    for (int i = 0; i < 10; i++) {
        CHECK(write(fd, page, 10) == 10);
        with_room(fd);
    }
}

int main(int count, char **arguments) {
    CHECK(count >= 2);
    const char *name = arguments[1];
#define CASE(text, call) if (!strcmp(name, text)) { call; return 0; }
    CASE("calls", calls())
    CASE("hints", hints())
    CASE("forked", forked())
    CASE("executed", executed(arguments[0]))
    CASE("started", started(arguments[2]))
    CASE("one", one())
    CASE("threads", threads())
    CASE("small_stack", small_stack())
    CASE("killed", killed())
    CASE("no_room", no_room())
    CASE("endless", endless())
    CASE("many_descriptors", many_descriptors())
    CASE("cancelled", cancelled())
    CASE("interrupted", interrupted())
    CASE("errors", errors())
    CASE("content", content())
    CASE("mapped", mapped())
    CASE("alternate_stack", alternate_stack())
    CASE("coroutines", coroutines())
    CASE("remains", remains())
    return 97;
}
