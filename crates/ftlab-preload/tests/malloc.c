/* A program whose memory comes from functions of its own: calling them from within a file call would recurse in many an allocator,
   so it is an error here. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static char memory[1 << 22];
static size_t used;
static volatile int in_call;

void *malloc(size_t size) {
    if (in_call) _exit(96);
    size_t at = used;
    used += (size + 31) / 16 * 16;
    *(size_t *)(memory + at) = size;
    return memory + at + 16;
}
void free(void *at) {
    (void)at;
    if (in_call) _exit(95);
}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *old, size_t size) {
    void *new = malloc(size);
    if (old) memcpy(new, old, size < ((size_t *)old)[-2] ? size : ((size_t *)old)[-2]);
    return new;
}

int main(void) {
    in_call = 1;
    int fd = open("a", O_RDWR | O_CREAT, 0644);
    char page[5000] = {0};
    for (int i = 0; i < 100; i++)
        if (pwrite(fd, page, 5000, 100 * i) != 5000) return 1;
    if (fsync(fd) || ftruncate(fd, 0) || close(fd) || unlink("a")) return 2;
    in_call = 0;
    return 0;
}
