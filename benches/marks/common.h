// What both marks need: two clocks, memory in huge pages, random numbers, and the line of figures that they print.

#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Zeroed memory, aligned to huge pages and asking for them: most of the time of either mark goes into misses of the TLB and the caches.
static void *memory(size_t bytes) {
    const uintptr_t huge = 2u << 20;
    char *start = mmap(NULL, bytes + 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        fprintf(stderr, "no %zu bytes of memory\n", bytes);
        exit(1);
    }
    start = (char *)(((uintptr_t)start + huge - 1) & ~(huge - 1));
    madvise(start, bytes, MADV_HUGEPAGE);
    memset(start, 0, bytes);
    return start;
}

// xorshift128+ from a fixed seed: the same work in every run. (Vigna 2017, "Further scramblings of Marsaglia's xorshift generators".)
static inline uint64_t draw(void) {
    static uint64_t first = 1, second = 2;
    uint64_t a = first;
    const uint64_t b = second;
    first = b;
    a ^= a << 23;
    second = a ^ b ^ (a >> 18) ^ (b >> 5);
    return second + b;
}

// Uniform below `limit`, which is far below 2^32.
static inline uint32_t below(uint32_t limit) { return (uint32_t)(((draw() >> 32) * limit) >> 32); }

// The numbers 0 to `n` - 1 in random order (Fisher and Yates).
static uint32_t *shuffled(uint32_t n) {
    uint32_t *order = malloc((size_t)n * sizeof *order);
    if (!order) {
        fprintf(stderr, "no memory for %u numbers\n", n);
        exit(1);
    }
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    for (uint32_t i = n - 1; i > 0; i--) {
        const uint32_t j = below(i + 1), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    return order;
}

// One JSON object. `copies`: pages that collection moved; with no `writes` there is no write amplification.
static void print_figures(double requests, double writes, double copies, double wall_s, double cpu_s) {
    printf("{\"per_second\": %.0f, \"programs_per_cpu_s\": %.0f, \"waf\": ", requests / wall_s, (writes + copies) / cpu_s);
    if (writes > 0) printf("%.4f}\n", 1 + copies / writes);
    else printf("null}\n");
}
