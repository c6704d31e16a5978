/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/handmade.h"

#include <stdlib.h>
#include <string.h>

struct s4d_program handmade(void)
{
    struct s4d_options options = s4d_options_default();
    return (struct s4d_program){
        .grid = s4d_grid_make(1, 1, 1, 1), .options = options, .micro_batches = 1};
}

int handmade_storage(struct s4d_program *p, int64_t bytes, bool persistent)
{
    struct s4d_storage s = {.name = s4d_arena_printf(&p->memory, "s%d", p->n_storages),
                            .bytes = bytes,
                            .role = persistent ? S4D_ROLE_MASTER : S4D_ROLE_ACTIVATION,
                            .persistent = persistent,
                            .offset = -1};
    s4d_push(p->storages, p->n_storages, p->cap_storages, s);
    return p->n_storages - 1;
}

int handmade_tensor(struct s4d_program *p, int storage, enum s4d_type type, int64_t offset,
                    int64_t n)
{
    struct s4d_tensor t = {.name = s4d_arena_printf(&p->memory, "t%d", p->n_tensors),
                           .storage = storage,
                           .type = type,
                           .offset = s4d_constant(offset),
                           .dims = 1,
                           .shape = {n},
                           .stride = {1}};
    s4d_push(p->tensors, p->n_tensors, p->cap_tensors, t);
    return p->n_tensors - 1;
}

int handmade_bytes(struct s4d_program *p, int storage, int64_t offset, int64_t n)
{
    return handmade_tensor(p, storage, S4D_U8, offset, n);
}

int handmade_op(struct s4d_program *p, enum s4d_op_kind kind, enum s4d_stream stream,
                const int *operands, int n)
{
    struct s4d_op op = {
        .kind = kind, .stream = stream, .label = {S4D_PHASE_FORWARD, -1, -1, "handmade"}};
    for (int i = 0; i < n; i++) {
        char access = s4d_op_kinds[kind].operand[i].access;
        op.operand[i].tensor = operands[i];
        op.operand[i].access = access == 'r'   ? S4D_READ
                               : access == 'w' ? S4D_WRITE
                                               : S4D_ACCUMULATE;
    }
    s4d_push(p->ops, p->n_ops, p->cap_ops, op);
    return p->n_ops - 1;
}

int handmade_copy(struct s4d_program *p, enum s4d_stream stream, int from, int to)
{
    return handmade_op(p, S4D_OP_COPY, stream, (const int[]){from, to}, 2);
}

static unsigned next(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* On the compute stream a copy or sum of n elements, on others an all-reduce in a group of one. */
static void random_op(struct s4d_program *p, unsigned *seed, int in, int out, int64_t n, bool whole)
{
    enum s4d_stream stream = (enum s4d_stream)(next(seed) % 5);
    enum s4d_op_kind kind = stream != S4D_STREAM_COMPUTE ? S4D_OP_ALL_REDUCE
                            : !whole && next(seed) % 2   ? S4D_OP_ADD
                                                         : S4D_OP_COPY;
    int op = handmade_op(p, kind, stream, (const int[]){in, out}, 2);
    if (kind != S4D_OP_ALL_REDUCE)
        return;
    p->ops[op].c.collective.axes = s4d_streams[stream].axes;
    p->ops[op].c.collective.members = 1;
    p->ops[op].c.collective.count = n;
    p->ops[op].c.collective.type = S4D_BF16;
}

struct s4d_program handmade_random(unsigned seed, int n_ops, int n_storages)
{
    enum { N = 32 }; /* elements of the smallest storage */
    struct s4d_program p = handmade();
    bool *written = calloc((size_t)n_storages, sizeof *written);
    for (int i = 0; i < n_storages; i++)
        handmade_storage(&p, 2 * N * (1 + (int64_t)(next(&seed) % 20)), i == 0 || i % 7 == 0);
    while (p.n_ops < n_ops) {
        int from = (int)(next(&seed) % (unsigned)n_storages),
            to = (int)(next(&seed) % (unsigned)n_storages);
        if (from == to || (!written[from] && !p.storages[from].persistent))
            continue;
        int64_t size = p.storages[to].bytes / 2, at = next(&seed) % N,
                n = 1 + next(&seed) % (unsigned)(N - at);
        bool whole = !written[to] && !p.storages[to].persistent;
        if (whole && p.storages[from].bytes < p.storages[to].bytes) {
            int zero = handmade_tensor(&p, to, S4D_BF16, 0, size);
            handmade_op(&p, S4D_OP_ZERO, S4D_STREAM_COMPUTE, &zero, 1);
        } else if (whole) {
            random_op(&p, &seed, handmade_tensor(&p, from, S4D_BF16, 0, size),
                      handmade_tensor(&p, to, S4D_BF16, 0, size), size, true);
        } else {
            int64_t shift = next(&seed) % (unsigned)(N - n + 1);
            random_op(&p, &seed, handmade_tensor(&p, from, S4D_BF16, shift, n),
                      handmade_tensor(&p, to, S4D_BF16, at, n), n, false);
        }
        written[to] = true;
    }
    free(written);
    return p;
}

static bool share_storage(const struct s4d_program *p, const struct s4d_op *a,
                          const struct s4d_op *b)
{
    for (int i = 0; i < s4d_op_kinds[a->kind].n_operands; i++)
        for (int k = 0; k < s4d_op_kinds[b->kind].n_operands; k++)
            if (p->tensors[a->operand[i].tensor].storage ==
                p->tensors[b->operand[k].tensor].storage)
                return true;
    return false;
}

int handmade_batches(struct s4d_program *p)
{
    int batches = 0;
    for (int i = 0, end; i < p->n_ops; i = end) {
        const struct s4d_op *first = &p->ops[i];
        bool fits = s4d_communicates(first->kind);
        for (end = i + 1; fits && end < p->n_ops; end++) {
            fits = p->ops[end].stream == first->stream && s4d_communicates(p->ops[end].kind);
            for (int k = i; fits && k < end; k++)
                fits = !share_storage(p, &p->ops[k], &p->ops[end]);
            if (!fits)
                break;
        }
        batches += end - i > 1;
        for (int k = i; end - i > 1 && k < end; k++)
            p->ops[k].batch = batches;
    }
    return batches;
}

static bool are_together(const struct s4d_op *a, const struct s4d_op *b)
{
    return a == b || (a->batch != 0 && a->batch == b->batch);
}

/* Whether b, or one that is posted with it, waits for a or for one that is posted with that. */
static bool waits_for(const struct s4d_program *p, int b, int a)
{
    int n = p->n_ops;
    for (int i = 0; i < n; i++)
        for (int w = 0; w < p->ops[i].n_waits && are_together(&p->ops[i], &p->ops[b % n]); w++) {
            const struct s4d_wait *wait = &p->ops[i].waits[w];
            for (int k = 0; b / n + wait->iteration == a / n && k < n; k++)
                if (p->ops[k].stream == wait->stream && p->ops[k].position == wait->position &&
                    are_together(&p->ops[k], &p->ops[a % n]))
                    return true;
        }
    return false;
}

bool *handmade_closure(const struct s4d_program *p)
{
    int n = p->n_ops, N = 2 * n;
    bool *before = calloc((size_t)N * (size_t)N, sizeof *before);
    for (int b = 0; b < N; b++) {
        const struct s4d_op *x = &p->ops[b % n];
        for (int a = 0; a < b; a++) {
            const struct s4d_op *y = &p->ops[a % n];
            bool together = a / n == b / n && are_together(x, y);
            if (together || (x->stream != y->stream && !waits_for(p, b, a)))
                continue;
            before[(size_t)b * (size_t)N + (size_t)a] = true;
            for (int c = 0; c < a; c++)
                before[(size_t)b * (size_t)N + (size_t)c] |=
                    before[(size_t)a * (size_t)N + (size_t)c];
        }
    }
    return before;
}
