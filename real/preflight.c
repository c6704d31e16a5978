/* SPDX-License-Identifier: Apache-2.0 */
#include "real/preflight.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/preflight_values.h"
#include "support/memory.h"
#include "support/statistics.h"

/* A sample lasts about sample_s, the rate is that of the median of SAMPLES. A product, a copy or a
 * sum is made larger until one takes long_s, so that launching it does not matter. All of these are
 * assumed: 2 ms are hundreds of launches, and a whole check stays below a minute. */
static const double sample_s = 0.02, long_s = 2e-3;
enum {
    SAMPLES = 5,
    MOST_REPEATS = 1000,
    SMALLEST = 256, /* of products */
    TRIED = 1024,   /* the largest that is tried before memory for larger ones is there */
    LARGEST = 8192,
    ALIGN = 256,
    LOOKED_AT = 128 /* elements, by each rank */
};
static const int64_t pinned_bytes = 64 << 20, least_copy = 64 << 20, most_copy = 1 << 30,
                     least_sum = 4 << 20, most_sum = 256 << 20, tried_bytes = 8 << 20;

struct work {
    struct s4d_preflight *p;
    struct s4d_device *device;
    const struct s4d_peers *peers;
    unsigned char *memory, *pinned;
    int64_t memory_bytes;
    /* What is timed now. */
    struct s4d_op op;
    struct s4d_call call;
};

static int enqueue(const struct work *w, struct s4d_error *err)
{
    struct s4d_device *d = w->device;
    switch (s4d_op_kinds[w->op.kind].op_class) {
    case S4D_CLASS_GEMM:
        return d->gemm(d->self, &w->call, 0, err);
    case S4D_CLASS_COPY:
        return d->copy(d->self, &w->call, 0, err);
    case S4D_CLASS_COLLECTIVE:
        return d->post(d->self, &w->call, 1, 0, err);
    default:
        return d->kernel(d->self, &w->call, 0, err);
    }
}

/* Seconds of so many in a row, by the device's clock. */
static int run(const struct work *w, int repeats, double *t_s, struct s4d_error *err)
{
    struct s4d_device *d = w->device;
    double start_s = NAN, end_s = NAN;
    if (d->mark(d->self, w->op.stream, &start_s, err))
        return -1;
    for (int i = 0; i < repeats; i++)
        if (enqueue(w, err))
            return -1;
    if (d->mark(d->self, w->op.stream, &end_s, err) || d->finish(d->self, err))
        return -1;
    *t_s = end_s - start_s;
    return 0;
}

/* Of one, the second time, on the slowest rank. */
static int run_once(struct work *w, double *t_s, struct s4d_error *err)
{
    w->peers->barrier(w->peers->self);
    if (run(w, 1, t_s, err) || run(w, 1, t_s, err))
        return -1;
    w->peers->maximum(w->peers->self, t_s, 1);
    *t_s = *t_s > 1e-7 ? *t_s : 1e-7; /* below what clocks tell */
    return 0;
}

static struct s4d_buffer matrix(const struct work *w, enum s4d_type type, int i, int64_t n)
{
    int64_t bytes = (n * n * s4d_type_bytes[type] + ALIGN - 1) / ALIGN * ALIGN;
    return (struct s4d_buffer){w->memory + i * bytes, type, n, n, n};
}

/* What is run and timed next. */
static void set_op(struct work *w, int kind)
{
    int index = w->p->check[kind].op;
    w->op = w->p->ops[index];
    w->call = (struct s4d_call){.op = &w->op, .index = index};
}

static void set_product(struct work *w, int64_t n)
{
    enum s4d_type type = w->p->program.options.precision;
    w->op.c.gemm.m = w->op.c.gemm.n = w->op.c.gemm.k = n;
    for (int i = 0; i < 3; i++)
        w->call.operand[i] = matrix(w, type, i, n);
}

static void set_copy(struct work *w, int64_t bytes)
{
    enum s4d_op_kind kind = w->op.kind;
    int64_t n = bytes / 4;
    w->call.operand[0] = (struct s4d_buffer){w->memory, S4D_F32, 1, n, n};
    w->call.operand[1] = (struct s4d_buffer){w->memory + bytes, S4D_F32, 1, n, n};
    if (kind == S4D_OP_COPY) { /* rows, as kernels like them */
        w->call.operand[0].rows = w->call.operand[1].rows = n / 1024;
        w->call.operand[0].cols = w->call.operand[1].cols = 1024;
        w->call.operand[0].stride = w->call.operand[1].stride = 1024;
    }
    if (kind == S4D_OP_HOST_TO_DEVICE)
        w->call.operand[0].data = w->pinned;
    if (kind == S4D_OP_DEVICE_TO_HOST)
        w->call.operand[1].data = w->pinned;
}

static void set_sum(struct work *w, int64_t bytes)
{
    int64_t n = bytes / 4;
    w->op.c.collective.reduction = S4D_SUM;
    w->op.c.collective.type = S4D_F32;
    w->op.c.collective.count = n;
    w->op.c.collective.members = s4d_group_size(&w->p->program.grid, w->op.c.collective.axes);
    w->call.operand[0] = (struct s4d_buffer){w->memory, S4D_F32, 1, n, n};
    w->call.operand[1] = (struct s4d_buffer){w->memory + bytes, S4D_F32, 1, n, n};
}

static bool sums(int kind)
{
    return s4d_preflight_kinds[kind].stream != S4D_STREAMS;
}

static void set(struct work *w, int kind, int64_t size)
{
    set_op(w, kind);
    if (sums(kind))
        set_sum(w, size);
    else if (s4d_preflight_kinds[kind].flops)
        set_product(w, size);
    else
        set_copy(w, size);
}

/* FLOP or bytes of one. */
static double amount(const struct work *w, int kind, int64_t size)
{
    double n = (double)size;
    if (sums(kind))
        return s4d_bus_factor(S4D_OP_ALL_REDUCE, w->p->check[kind].members) * n;
    if (s4d_preflight_kinds[kind].flops)
        return 2 * n * n * n;
    return kind == S4D_PREFLIGHT_MEMORY ? 2 * n : n;
}

/* The smallest power of two times `least` that takes long_s at the rate of a trial. */
static int64_t grown(int64_t trial, double t_s, double power, int64_t least, int64_t most)
{
    double wanted = (double)trial * pow(long_s / t_s, 1 / power);
    int64_t size = least;
    while (size < most && (double)size < wanted)
        size *= 2;
    return size;
}

/* Sizes, the same on all ranks, from trials in a little memory. */
static int choose_sizes(struct work *w, struct s4d_error *err)
{
    struct s4d_preflight *p = w->p;
    double t_s = 0;
    int64_t n = SMALLEST;
    for (;; n *= 2) {
        set(w, S4D_PREFLIGHT_GEMM, n);
        if (run_once(w, &t_s, err))
            return -1;
        if (t_s >= long_s || n == TRIED)
            break;
    }
    p->check[S4D_PREFLIGHT_ALONE].size = p->check[S4D_PREFLIGHT_GEMM].size =
        grown(n, t_s, 3, SMALLEST, LARGEST);
    set(w, S4D_PREFLIGHT_MEMORY, tried_bytes);
    if (run_once(w, &t_s, err))
        return -1;
    p->check[S4D_PREFLIGHT_MEMORY].size = grown(tried_bytes, t_s, 1, least_copy, most_copy);
    p->check[S4D_PREFLIGHT_TO_DEVICE].size = p->check[S4D_PREFLIGHT_FROM_DEVICE].size =
        pinned_bytes;
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++) {
        if (!sums(k) || p->program.stream_length[s4d_preflight_kinds[k].stream] == 0)
            continue;
        set(w, k, least_sum);
        if (run_once(w, &t_s, err))
            return -1;
        p->check[k].size = grown(least_sum, t_s, 1, least_sum, most_sum);
    }
    return 0;
}

static int allocate(struct work *w, int64_t bytes, struct s4d_error *err)
{
    void *memory;
    if (w->device->allocate(w->device->self, S4D_DEVICE, bytes, &memory, err))
        return -1;
    w->memory = memory;
    w->memory_bytes = bytes;
    return 0;
}

static int allocate_sizes(struct work *w, struct s4d_error *err)
{
    const struct s4d_preflight *p = w->p;
    int64_t n = p->check[S4D_PREFLIGHT_GEMM].size, bytes = 0;
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++)
        if (!s4d_preflight_kinds[k].flops && 2 * p->check[k].size > bytes)
            bytes = 2 * p->check[k].size;
    int64_t product = 3 * (n * n * s4d_type_bytes[p->program.options.precision] + ALIGN);
    return allocate(w, product > bytes ? product : bytes, err);
}

/* The inputs of what is timed, and what the memory held before. */
static int fill(struct work *w, int kind, struct s4d_error *err)
{
    struct s4d_device *d = w->device;
    int operands = s4d_preflight_kinds[kind].flops ? 2 : sums(kind) ? 1 : 0;
    for (int k = 0; k < operands; k++) {
        const struct s4d_buffer *b = &w->call.operand[k];
        int64_t n = b->rows * b->cols, first = sums(kind) ? w->peers->rank : k * n;
        void *values = s4d_malloc((size_t)(n * s4d_type_bytes[b->type]));
        for (int64_t i = 0; i < n; i++)
            s4d_preflight_store(b->type, values, i, s4d_preflight_element(first + i));
        int rc = d->upload(d->self, b, values, err);
        free(values);
        if (rc)
            return -1;
    }
    return 0;
}

/* Looks at some elements of the result. */
static int look(struct work *w, int kind, double *wrong, struct s4d_error *err)
{
    struct s4d_device *d = w->device;
    const struct s4d_buffer *out = &w->call.operand[sums(kind) ? 1 : 2];
    int ranks = s4d_grid_ranks(&w->p->program.grid);
    int *members = s4d_calloc((size_t)ranks, sizeof *members);
    if (sums(kind))
        s4d_group_members(&w->p->program.grid, w->peers->rank, w->op.c.collective.axes, members);
    *wrong = 0;
    for (int64_t e = 0; e < LOOKED_AT; e++) {
        int64_t i = (2 * e + 1) * out->rows / (2 * LOOKED_AT),
                j = (e * 37 + 1) % LOOKED_AT * (out->cols / LOOKED_AT);
        int bytes = s4d_type_bytes[out->type];
        struct s4d_buffer one = {(char *)out->data + (i * out->stride + j) * bytes, out->type, 1, 1,
                                 1};
        double found = 0, must = 0;
        s4d_preflight_store(out->type, &must, 0,
                            sums(kind) ? s4d_preflight_sum(members, w->op.c.collective.members, j)
                                       : s4d_preflight_product(out->cols, i, j));
        if (d->download(d->self, &one, &found, err)) {
            free(members);
            return -1;
        }
        *wrong += memcmp(&found, &must, (size_t)bytes) != 0;
    }
    free(members);
    return 0;
}

/* Seconds of one, the median of some samples, by this rank. */
static int sample(struct work *w, double once_s, double *t_s, struct s4d_error *err)
{
    double samples[SAMPLES], repeats = ceil(sample_s / once_s);
    int n = repeats < 1 ? 1 : repeats < MOST_REPEATS ? (int)repeats : MOST_REPEATS;
    for (int i = 0; i < SAMPLES; i++) {
        if (run(w, n, &samples[i], err))
            return -1;
        samples[i] /= n;
    }
    *t_s = s4d_statistics(samples, SAMPLES).median;
    *t_s = *t_s > 1e-9 ? *t_s : 1e-9;
    return 0;
}

/* Ranks of a node with this number measure, or all (-1). */
static int measure_turn(struct work *w, int kind, int turn, double once_s, double *rate,
                        struct s4d_error *err)
{
    struct s4d_preflight_check *c = &w->p->check[kind];
    int node = w->p->ranks_per_node > 0 ? w->p->ranks_per_node : w->peers->size;
    double t_s;
    w->peers->barrier(w->peers->self);
    if (turn >= 0 && w->peers->rank % node != turn)
        return 0;
    if (sample(w, once_s, &t_s, err))
        return -1;
    rate[w->peers->rank] = amount(w, kind, c->size) / t_s;
    return 0;
}

/* One attempt: the better of it and those before is kept, of every rank. */
static int measure_once(struct work *w, int kind, double once_s, struct s4d_error *err)
{
    struct s4d_preflight_check *c = &w->p->check[kind];
    int ranks = w->peers->size, node = w->p->ranks_per_node > 0 ? w->p->ranks_per_node : ranks;
    double *rate = s4d_calloc((size_t)ranks, sizeof *rate);
    int rc = 0;
    if (kind == S4D_PREFLIGHT_ALONE)
        for (int turn = 0; turn < node && !rc; turn++)
            rc = measure_turn(w, kind, turn, once_s, rate, err);
    else
        rc = measure_turn(w, kind, -1, once_s, rate, err);
    if (!rc)
        w->peers->sum(w->peers->self, rate, ranks);
    for (int r = 0; r < ranks && !rc; r++)
        c->rate[r] = fmax(c->rate[r], rate[r]);
    free(rate);
    return rc;
}

static bool is_slow(struct s4d_preflight *p, int kind)
{
    struct s4d_preflight_finding *findings;
    int n = s4d_preflight_judge(p, &findings);
    bool slow = false;
    for (int i = 0; i < n; i++)
        slow = slow || ((int)findings[i].kind == kind &&
                        (findings[i].median > 0 || findings[i].expected > 0));
    free(findings);
    return slow;
}

static int measure(struct work *w, int kind, struct s4d_error *err)
{
    struct s4d_preflight *p = w->p;
    struct s4d_preflight_check *c = &p->check[kind];
    int attempts = p->options.attempts;
    double once_s, wrong = 0;
    set(w, kind, c->size);
    if (p->options.expected)
        c->expected = p->options.expected(p->options.self, (enum s4d_preflight_kind)kind, c->size);
    if (fill(w, kind, err) || run_once(w, &once_s, err))
        return -1;
    for (int i = 0; i < attempts && (i == 0 || is_slow(p, kind)); i++)
        if (measure_once(w, kind, once_s, err))
            return -1;
    bool looks = s4d_preflight_kinds[kind].flops || sums(kind);
    if (looks && look(w, kind, &wrong, err))
        return -1;
    c->wrong[w->peers->rank] = wrong;
    w->peers->sum(w->peers->self, c->wrong, w->peers->size);
    return 0;
}

int s4d_preflight_measure(struct s4d_preflight *p, struct s4d_device *device,
                          const struct s4d_peers *peers, struct s4d_error *err)
{
    struct work w = {.p = p, .device = device, .peers = peers};
    void *pinned;
    int64_t trial = 3 * (int64_t)TRIED * TRIED * 8;
    if (device->allocate(device->self, S4D_PINNED_HOST, pinned_bytes, &pinned, err) ||
        allocate(&w, trial > 2 * tried_bytes ? trial : 2 * tried_bytes, err))
        return -1;
    w.pinned = pinned;
    if (choose_sizes(&w, err) || allocate_sizes(&w, err))
        return -1;
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++)
        if (p->check[k].size > 0 && measure(&w, k, err))
            return -1;
    return 0;
}
