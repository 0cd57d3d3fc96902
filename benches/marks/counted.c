// The least that a page-mapped greedy drive must do under uniform random overwrites, without time: a mark for the counting backend.
//
//     counted GIB MILLIONS        capacity in GiB of 4 KiB pages; million writes that are measured (fractions allowed)
//
// One pool of 256-page blocks, 10 % spare, host writes and survivors in one open block, one block kept free: the work of the drive
// `bench-64g`. Map, reverse map, a bit and a count of valid pages, and a list of closed blocks for each count; nothing else. It starts
// near the steady state, and a quarter of the measured writes goes before them. Greedy theory: write amplification 5.08.

#include "common.h"

enum { PAGES = 256, WORDS = PAGES / 64, NONE = -1, RING = 64, MAP_AHEAD = 16, SLOT_AHEAD = 8 };

static const double SHARE = 0.9;         // logical of raw pages
static const double LEAST_VALID = 0.803; // x of (x - 1) / ln x = SHARE: the valid share of greedy's victims

static uint32_t *map;                                   // slot of an LPN
static uint32_t *owner;                                 // LPN of a slot
static uint64_t *valid;                                 // a bit for each slot
static uint16_t *count;                                 // valid pages of a block
static uint8_t *closed;                                 // whether a block is in a list
static int32_t *next, *previous, heads[PAGES + 1];      // closed blocks by valid pages
static uint32_t lowest = PAGES;                         // no list below this one has blocks
static int32_t open_block, free_block;
static uint32_t used;                                   // pages used of the open block
static uint64_t copies;

static inline void take_out(int32_t block) {
    if (previous[block] >= 0) next[previous[block]] = next[block];
    else heads[count[block]] = next[block];
    if (next[block] >= 0) previous[next[block]] = previous[block];
}

static inline void put_in(int32_t block) {
    const uint32_t list = count[block];
    next[block] = heads[list];
    previous[block] = NONE;
    if (heads[list] >= 0) previous[heads[list]] = block;
    heads[list] = block;
    if (list < lowest) lowest = list;
}

static inline void close_block(int32_t block) {
    closed[block] = 1;
    put_in(block);
}

static inline void open_as(int32_t block) {
    open_block = block;
    used = 0;
    count[block] = 0;
}

static inline void invalidate(uint32_t slot) {
    const int32_t block = (int32_t)(slot / PAGES);
    valid[slot >> 6] &= ~(1ull << (slot & 63));
    if (closed[block]) {
        take_out(block);
        count[block]--;
        put_in(block);
    } else {
        count[block]--;
    }
}

static inline void place(uint32_t lpn, uint32_t slot) {
    owner[slot] = lpn;
    map[lpn] = slot;
    valid[slot >> 6] |= 1ull << (slot & 63);
}

static inline void program(uint32_t lpn) {
    place(lpn, (uint32_t)open_block * PAGES + used++);
    count[open_block]++;
}

// Collects one victim. If its survivors fill the open block they go on into the victim itself, and no block is free yet.
static void collect(void) {
    while (heads[lowest] < 0) lowest++;
    const int32_t victim = heads[lowest];
    take_out(victim);
    closed[victim] = 0;
    uint32_t survivors[PAGES], n = 0;
    for (uint32_t word = 0; word < WORDS; word++) {
        uint64_t bits = valid[(uint32_t)victim * WORDS + word];
        valid[(uint32_t)victim * WORDS + word] = 0;
        for (; bits; bits &= bits - 1) {
            survivors[n] = owner[(uint32_t)victim * PAGES + word * 64 + (uint32_t)__builtin_ctzll(bits)];
            __builtin_prefetch(&map[survivors[n]], 1);
            n++;
        }
    }
    count[victim] = 0;
    free_block = victim;
    for (uint32_t i = 0; i < n; i++) {
        if (used == PAGES) {
            close_block(open_block);
            open_as(victim);
            free_block = NONE;
        }
        program(survivors[i]);
    }
    copies += n;
}

// The open block is full: goes on in the free one, and collects until a block is free again and a page can be written.
static void make_room(void) {
    do {
        close_block(open_block);
        open_as(free_block);
        do collect();
        while (free_block == NONE);
    } while (used == PAGES);
}

// Closed blocks whose valid share falls evenly in its logarithm from 1 to LEAST_VALID: greedy's steady state, nearly.
static void fill(uint32_t blocks, uint32_t logical) {
    uint32_t *order = shuffled(logical);
    const uint32_t filled = blocks - 2;
    double wanted = 0;
    uint32_t lpns = 0;
    for (uint32_t block = 0; block < filled; block++) {
        wanted += PAGES * exp(log(LEAST_VALID) * block / filled);
        const uint32_t here = (uint32_t)(wanted + 0.5) - lpns, first = below(PAGES);
        for (uint32_t i = 0; i < here && i < PAGES && lpns < logical; i++) {
            // 101 is odd, so the valid pages are scattered and none is met twice.
            place(order[lpns++], block * PAGES + (first + i * 101) % PAGES);
            count[block]++;
        }
    }
    for (uint32_t slot = 0; lpns < logical; slot++) {
        if (valid[slot >> 6] >> (slot & 63) & 1) continue;
        place(order[lpns++], slot);
        count[slot / PAGES]++;
    }
    for (uint32_t block = 0; block < filled; block++) close_block((int32_t)block);
    free(order);
    open_as((int32_t)filled);
    free_block = (int32_t)filled + 1;
}

// `writes` uniform overwrites, each drawn RING writes before it is done, so that map and list entries can be fetched ahead.
static void overwrite(uint32_t *ring, uint64_t writes, uint32_t logical) {
    for (uint64_t i = 0; i < writes; i++) {
        const uint32_t lpn = ring[i % RING];
        ring[i % RING] = below(logical);
        __builtin_prefetch(&map[ring[(i + MAP_AHEAD) % RING]], 1);
        const uint32_t soon = map[ring[(i + SLOT_AHEAD) % RING]];
        __builtin_prefetch(&valid[soon >> 6], 1);
        __builtin_prefetch(&count[soon / PAGES], 1);
        __builtin_prefetch(&next[soon / PAGES], 1);
        __builtin_prefetch(&previous[soon / PAGES], 1);
        invalidate(map[lpn]);
        if (used == PAGES) make_room();
        program(lpn);
    }
}

int main(int argc, char **argv) {
    if (argc != 3 || atoi(argv[1]) < 1 || atof(argv[2]) <= 0) {
        fprintf(stderr, "usage: counted GIB MILLIONS\n");
        return 2;
    }
    const uint32_t raw = (uint32_t)atoi(argv[1]) << 18, blocks = raw / PAGES, logical = (uint32_t)(raw * SHARE);
    const uint64_t writes = (uint64_t)(atof(argv[2]) * 1e6);
    map = memory((size_t)logical * sizeof *map);
    owner = memory((size_t)raw * sizeof *owner);
    valid = memory((size_t)raw / 8);
    count = memory((size_t)blocks * sizeof *count);
    next = memory((size_t)blocks * sizeof *next);
    previous = memory((size_t)blocks * sizeof *previous);
    closed = memory(blocks);
    for (uint32_t list = 0; list <= PAGES; list++) heads[list] = NONE;
    fill(blocks, logical);
    uint32_t ring[RING];
    for (uint32_t i = 0; i < RING; i++) ring[i] = below(logical);
    overwrite(ring, writes / 4, logical);
    copies = 0;
    const double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    overwrite(ring, writes, logical);
    print_figures((double)writes, (double)writes, (double)copies, seconds(CLOCK_MONOTONIC) - wall,
                  seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return 0;
}
