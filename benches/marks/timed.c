// The least that a timed drive must do under uniform requests at queue depth 32: a mark for the timed backend.
//
//     timed READ_SHARE MILLIONS       0: overwrites, 0.7: mixed, 1: reads; million requests that are measured (fractions allowed)
//
// 16 GiB of 4 KiB pages on 8 channels of 4 dies, 12.5 % spare, page map, greedy collection for each die, first come first served on dies
// and channels, the times of the drive `bench-16g`. A read is a cell phase and a transfer, a write a transfer and a cell phase, a copy both,
// out of the die and back; the copies of a victim lie in the die's queue as one job and become phases one at a time.
//
// Less than ftlab does: commands and the host link take no time, and nothing is kept of a request but its latency. A third of a million requests goes before each million that is measured.

#include "common.h"

enum { CHANNELS = 8, WAYS = 4, DIES = CHANNELS * WAYS, PAGES = 256, WORDS = PAGES / 64, BLOCKS = 512 };
enum { DEPTH = 32, RING = 64, MAP_AHEAD = 20, SLOT_AHEAD = 8, COPY_AHEAD = 24, HARD = 2, JOBS = 1024 };

static const uint64_t READ_NS = 50000, PROGRAM_NS = 500000, ERASE_NS = 3000000, TRANSFER_NS = 12288;
static const double SHARE = 0.875;        // logical of raw pages
static const double LEAST_VALID = 0.7684; // x of (x - 1) / ln x = SHARE over the blocks that are closed

static uint32_t *map;   // slot of an LPN
static uint32_t *owner; // LPN of a slot
static uint64_t *valid; // a bit for each slot
static uint32_t logical;
static uint16_t count[DIES][BLOCKS];
static uint8_t closed[DIES][BLOCKS];

typedef struct {
    uint32_t used, open, free;
    uint16_t free_blocks[BLOCKS];
} Pool;

typedef enum { READ, WRITE, COPIES, ERASE } Kind;

typedef struct {
    Kind kind;
    uint32_t pages;
    uint64_t arrived_ns;
} Job;

// What a die is doing, or what it waits for the channel to do.
typedef enum { IDLE, READ_CELL, DATA_IN, PROGRAM_CELL, COPY_READ, COPY_OUT, COPY_IN, COPY_PROGRAM, ERASE_CELL } Phase;

typedef struct {
    Job jobs[JOBS]; // a ring
    uint32_t head, tail;
    Phase phase;
    uint32_t left; // copies to go
} Die;

typedef struct {
    uint8_t waiting[RING]; // dies, a ring
    uint32_t head, tail;
    int die; // that is transferring, or -1
} Channel;

static Pool pools[DIES];
static Die dies[DIES];
static Channel channels[CHANNELS];

// Events: a binary heap of time << 8 | source. Sources are the dies, then the channels; each has at most one event.
static uint64_t heap[DIES + CHANNELS];
static int events;
static uint64_t now_ns;

static uint64_t done, writes, copies;
static uint64_t latency_ns;
static double read_share;
static uint32_t next_die, admitted, ring[RING];
static uint8_t ring_reads[RING];

static inline void schedule(uint64_t time_ns, int source) {
    const uint64_t event = time_ns << 8 | (uint64_t)source;
    int at = events++;
    for (; at && heap[(at - 1) / 2] > event; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = event;
}

static inline uint64_t next_event(void) {
    const uint64_t first = heap[0], last = heap[--events];
    int at = 0;
    for (int child = 1; child < events; child = 2 * at + 1) {
        if (child + 1 < events && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

static inline void transfer(int die) {
    Channel *channel = &channels[die / WAYS];
    if (channel->die < 0) {
        channel->die = die;
        schedule(now_ns + TRANSFER_NS, DIES + die / WAYS);
    } else {
        channel->waiting[channel->tail++ % RING] = (uint8_t)die;
    }
}

static inline void enter(int die, Phase phase, uint64_t ns) {
    dies[die].phase = phase;
    schedule(now_ns + ns, die);
}

static void start(int die) {
    Die *d = &dies[die];
    if (d->head == d->tail) return;
    const Job *job = &d->jobs[d->head % JOBS];
    switch (job->kind) {
    case READ: enter(die, READ_CELL, READ_NS); break;
    case WRITE:
        d->phase = DATA_IN;
        transfer(die);
        break;
    case COPIES:
        d->left = job->pages;
        enter(die, COPY_READ, READ_NS);
        break;
    case ERASE: enter(die, ERASE_CELL, ERASE_NS); break;
    }
}

static inline void enqueue(int die, Job job) {
    Die *d = &dies[die];
    const int idle = d->head == d->tail;
    d->jobs[d->tail++ % JOBS] = job;
    if (idle) start(die);
}

static inline void place(uint32_t lpn, uint32_t slot) {
    owner[slot] = lpn;
    map[lpn] = slot;
    valid[slot >> 6] |= 1ull << (slot & 63);
    count[slot / PAGES / BLOCKS][slot / PAGES % BLOCKS]++;
}

static inline void program(int die, uint32_t lpn) {
    Pool *pool = &pools[die];
    place(lpn, ((uint32_t)die * BLOCKS + pool->open) * PAGES + pool->used++);
}

static void open_next(int die) {
    Pool *pool = &pools[die];
    closed[die][pool->open] = 1;
    pool->open = pool->free_blocks[--pool->free];
    pool->used = 0;
    count[die][pool->open] = 0;
}

static void collect(int die) {
    Pool *pool = &pools[die];
    uint32_t victim = 0, fewest = PAGES + 1;
    for (uint32_t block = 0; block < BLOCKS; block++) {
        if (closed[die][block] && count[die][block] < fewest) {
            fewest = count[die][block];
            victim = block;
        }
    }
    const uint32_t base = ((uint32_t)die * BLOCKS + victim) * PAGES;
    uint32_t survivors[PAGES], n = 0;
    for (uint32_t word = 0; word < WORDS; word++) {
        uint64_t bits = valid[base / 64 + word];
        valid[base / 64 + word] = 0;
        for (; bits; bits &= bits - 1) {
            survivors[n] = owner[base + word * 64 + (uint32_t)__builtin_ctzll(bits)];
            if (n < COPY_AHEAD) __builtin_prefetch(&map[survivors[n]], 1);
            n++;
        }
    }
    closed[die][victim] = 0;
    count[die][victim] = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i + COPY_AHEAD < n) __builtin_prefetch(&map[survivors[i + COPY_AHEAD]], 1);
        if (pool->used == PAGES) open_next(die);
        program(die, survivors[i]);
    }
    copies += n;
    if (n) enqueue(die, (Job){COPIES, n, 0});
    enqueue(die, (Job){ERASE, 0, 0});
    pool->free_blocks[pool->free++] = (uint16_t)victim;
}

static void make_room(int die) {
    while (pools[die].used == PAGES) {
        open_next(die);
        while (pools[die].free < HARD) collect(die);
    }
}

static inline int draw_read(void) { return read_share > 0 && (double)(draw() >> 11) * 0x1p-53 < read_share; }

// The next request, drawn RING requests before, so that its entries of the map can be fetched ahead.
static void admit(void) {
    const uint32_t i = admitted++, lpn = ring[i % RING];
    const int read = ring_reads[i % RING];
    ring[i % RING] = below(logical);
    ring_reads[i % RING] = (uint8_t)draw_read();
    __builtin_prefetch(&map[ring[(i + MAP_AHEAD) % RING]], 1);
    __builtin_prefetch(&valid[map[ring[(i + SLOT_AHEAD) % RING]] >> 6], 1);
    const uint32_t slot = map[lpn];
    if (read) {
        enqueue((int)(slot / PAGES / BLOCKS), (Job){READ, 0, now_ns});
        return;
    }
    valid[slot >> 6] &= ~(1ull << (slot & 63));
    count[slot / PAGES / BLOCKS][slot / PAGES % BLOCKS]--;
    // Round robin, the channel fastest.
    const int turn = (int)(next_die++ % DIES), die = turn % CHANNELS * WAYS + turn / CHANNELS;
    make_room(die);
    program(die, lpn);
    writes++;
    enqueue(die, (Job){WRITE, 0, now_ns});
}

static inline void finish(int die) {
    Die *d = &dies[die];
    const Job job = d->jobs[d->head++ % JOBS];
    d->phase = IDLE;
    start(die);
    if (job.kind > WRITE) return;
    latency_ns += now_ns - job.arrived_ns;
    done++;
    admit();
}

static void channel_done(int number) {
    Channel *channel = &channels[number];
    const int die = channel->die;
    if (channel->head != channel->tail) {
        channel->die = channel->waiting[channel->head++ % RING];
        schedule(now_ns + TRANSFER_NS, DIES + number);
    } else {
        channel->die = -1;
    }
    switch (dies[die].phase) {
    case READ_CELL: finish(die); break;
    case DATA_IN: enter(die, PROGRAM_CELL, PROGRAM_NS); break;
    case COPY_OUT:
        dies[die].phase = COPY_IN;
        transfer(die);
        break;
    default: enter(die, COPY_PROGRAM, PROGRAM_NS);
    }
}

static void die_done(int die) {
    Die *d = &dies[die];
    switch (d->phase) {
    case READ_CELL: transfer(die); break;
    case COPY_READ:
        d->phase = COPY_OUT;
        transfer(die);
        break;
    case COPY_PROGRAM:
        if (--d->left) enter(die, COPY_READ, READ_NS);
        else finish(die);
        break;
    default: finish(die);
    }
}

static void run_until(uint64_t requests) {
    while (done < requests) {
        const uint64_t event = next_event();
        const int source = (int)(event & 255);
        now_ns = event >> 8;
        if (source < DIES) die_done(source);
        else channel_done(source - DIES);
    }
}

// On each die, closed blocks whose valid share falls evenly in its logarithm from 1 to LEAST_VALID: greedy's steady state, nearly.
static void fill(void) {
    uint32_t *order = shuffled(logical), lpns = 0;
    const uint32_t filled = BLOCKS - HARD - 1;
    for (uint32_t die = 0; die < DIES; die++) {
        const uint32_t end = (die + 1) * (logical / DIES), first_lpn = lpns;
        double wanted = 0;
        for (uint32_t block = 0; block < filled; block++) {
            wanted += PAGES * exp(log(LEAST_VALID) * block / filled);
            const uint32_t here = (uint32_t)(wanted + 0.5) - (lpns - first_lpn), first = below(PAGES);
            // 101 is odd, so the valid pages are scattered and none is met twice.
            for (uint32_t i = 0; i < here && i < PAGES && lpns < end; i++)
                place(order[lpns++], (die * BLOCKS + block) * PAGES + (first + i * 101) % PAGES);
        }
        for (uint32_t slot = die * BLOCKS * PAGES; lpns < end; slot++)
            if (!(valid[slot >> 6] >> (slot & 63) & 1)) place(order[lpns++], slot);
        memset(closed[die], 1, filled);
        pools[die] = (Pool){.open = filled, .free = HARD, .free_blocks = {BLOCKS - 1, BLOCKS - 2}};
    }
    free(order);
}

int main(int argc, char **argv) {
    if (argc != 3 || atof(argv[2]) <= 0) {
        fprintf(stderr, "usage: timed READ_SHARE MILLIONS\n");
        return 2;
    }
    read_share = atof(argv[1]);
    const uint64_t requests = (uint64_t)(atof(argv[2]) * 1e6);
    const uint32_t raw = DIES * BLOCKS * PAGES;
    logical = (uint32_t)(raw * SHARE);
    map = memory((size_t)logical * sizeof *map);
    owner = memory((size_t)raw * sizeof *owner);
    valid = memory((size_t)raw / 8);
    fill();
    for (int channel = 0; channel < CHANNELS; channel++) channels[channel].die = -1;
    for (int i = 0; i < RING; i++) {
        ring[i] = below(logical);
        ring_reads[i] = (uint8_t)draw_read();
    }
    for (int i = 0; i < DEPTH; i++) admit();
    run_until(requests / 3);
    const uint64_t done_before = done, writes_before = writes, copies_before = copies, latency_before = latency_ns;
    const double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    run_until(requests / 3 + requests);
    const double wall_s = seconds(CLOCK_MONOTONIC) - wall, cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    fprintf(stderr, "mean latency %.1f us\n", (double)(latency_ns - latency_before) / 1e3 / (double)(done - done_before));
    print_figures((double)(done - done_before), (double)(writes - writes_before), (double)(copies - copies_before), wall_s, cpu_s);
    return 0;
}
