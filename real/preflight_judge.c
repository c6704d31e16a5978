/* SPDX-License-Identifier: Apache-2.0 */
/* Who is slow: from the rates alone. */
#include <stdlib.h>

#include "real/preflight.h"
#include "support/memory.h"
#include "support/statistics.h"

const struct s4d_preflight_info s4d_preflight_kinds[S4D_PREFLIGHT_KINDS] = {
    {"gemm-alone", "a matrix product, one rank of a node at a time", true, S4D_STREAMS},
    {"gemm", "a matrix product, all ranks at once", true, S4D_STREAMS},
    {"memory", "a copy inside the device, read and written", false, S4D_STREAMS},
    {"to-device", "a copy from pinned memory of the host", false, S4D_STREAMS},
    {"from-device", "a copy to pinned memory of the host", false, S4D_STREAMS},
    {"node", "all-reduce in each node, bus bandwidth", false, S4D_STREAM_Y},
    {"rail", "all-reduce of ranks with one number in their nodes", false, S4D_STREAM_Z_GATHER},
    {"world", "all-reduce of all ranks, bus bandwidth", false, S4D_STREAM_X_Y_Z},
};

static const struct {
    enum s4d_op_kind op;
    enum s4d_stream stream;
} kinds[S4D_PREFLIGHT_NODE] = {
    {S4D_OP_GEMM, S4D_STREAM_COMPUTE},
    {S4D_OP_GEMM, S4D_STREAM_COMPUTE},
    {S4D_OP_COPY, S4D_STREAM_COMPUTE},
    {S4D_OP_HOST_TO_DEVICE, S4D_STREAM_COPY_IN},
    {S4D_OP_DEVICE_TO_HOST, S4D_STREAM_COPY_OUT},
};

static struct s4d_op op_of(int kind, enum s4d_op_kind op, enum s4d_stream stream)
{
    return (struct s4d_op){
        .kind = op,
        .stream = stream,
        .label = {.layer = -1, .micro_batch = -1, .name = s4d_preflight_kinds[kind].name}};
}

/* Whether ranks sum so: where one node, or one rank a node, is all there is, it is the world. */
static bool is_made(const struct s4d_preflight *p, int kind)
{
    int members = p->check[kind].members, ranks = s4d_grid_ranks(&p->program.grid);
    return s4d_preflight_kinds[kind].stream != S4D_STREAMS && members > 1 &&
           (kind == S4D_PREFLIGHT_WORLD || members < ranks);
}

void s4d_preflight_init(struct s4d_preflight *p, int ranks, int ranks_per_node,
                        enum s4d_type precision, const struct s4d_preflight_options *options)
{
    int node = ranks_per_node > 0 ? ranks_per_node : 1;
    *p = (struct s4d_preflight){.options = *options, .ranks_per_node = ranks_per_node};
    S4D_ASSERT(ranks % node == 0, "%d ranks, %d on each node", ranks, node);
    p->program = (struct s4d_program){
        .grid = s4d_grid_make(1, node, ranks / node, 1), .ops = p->ops, .n_ops = 0};
    p->program.options.precision = precision;
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++) {
        enum s4d_stream stream = s4d_preflight_kinds[k].stream;
        struct s4d_preflight_check *c = &p->check[k];
        c->rate = s4d_calloc((size_t)ranks, sizeof *c->rate);
        c->wrong = s4d_calloc((size_t)ranks, sizeof *c->wrong);
        c->members =
            stream == S4D_STREAMS ? 1 : s4d_group_size(&p->program.grid, s4d_streams[stream].axes);
        if (!is_made(p, k))
            continue;
        c->op = p->program.n_ops++;
        p->ops[c->op] = op_of(k, S4D_OP_ALL_REDUCE, stream);
        p->ops[c->op].c.collective.axes = s4d_streams[stream].axes;
        p->program.stream_length[stream] = 1;
    }
    int n = p->program.n_ops;
    for (int k = 0; k < S4D_PREFLIGHT_NODE; k++) {
        p->check[k].op = n;
        p->ops[n++] = op_of(k, kinds[k].op, kinds[k].stream);
    }
}

void s4d_preflight_free(struct s4d_preflight *p)
{
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++) {
        free(p->check[k].rate);
        free(p->check[k].wrong);
    }
    *p = (struct s4d_preflight){0};
}

/* The first rank of a rank's group; the rank where there are no groups. */
static int first_of(const struct s4d_preflight *p, int kind, int rank)
{
    enum s4d_stream stream = s4d_preflight_kinds[kind].stream;
    int coordinate[S4D_AXES];
    if (stream == S4D_STREAMS)
        return rank;
    s4d_grid_coordinates(&p->program.grid, rank, coordinate);
    for (int axis = 0; axis < S4D_AXES; axis++)
        if (s4d_streams[stream].axes & S4D_AXIS(axis))
            coordinate[axis] = 0;
    return s4d_grid_rank(&p->program.grid, coordinate);
}

/* A collective is as fast as its slowest member. */
static void spread_slowest(const struct s4d_preflight *p, int kind)
{
    const struct s4d_preflight_check *c = &p->check[kind];
    int ranks = s4d_grid_ranks(&p->program.grid);
    for (int r = 0; r < ranks; r++) {
        double *first = &c->rate[first_of(p, kind, r)];
        *first = c->rate[r] < *first ? c->rate[r] : *first;
    }
    for (int r = 0; r < ranks; r++)
        c->rate[r] = c->rate[first_of(p, kind, r)];
}

static struct s4d_preflight_finding judge_rank(const struct s4d_preflight *p, int kind, int rank)
{
    const struct s4d_preflight_check *c = &p->check[kind];
    struct s4d_preflight_finding f = {.kind = (enum s4d_preflight_kind)kind,
                                      .rank = rank,
                                      .members = c->members,
                                      .rate = c->rate[rank]};
    if (c->rate[rank] < (1 - p->options.slower) * c->median)
        f.median = c->median;
    if (c->expected > 0 && c->rate[rank] < (1 - p->options.tolerance[kind]) * c->expected)
        f.expected = c->expected;
    return f;
}

int s4d_preflight_judge(struct s4d_preflight *p, struct s4d_preflight_finding **findings)
{
    int n = 0, cap = 0, ranks = s4d_grid_ranks(&p->program.grid);
    *findings = NULL;
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++) {
        struct s4d_preflight_check *c = &p->check[k];
        if (c->size == 0)
            continue;
        spread_slowest(p, k);
        c->median = s4d_statistics(c->rate, ranks).median;
        for (int r = 0; r < ranks; r++) {
            struct s4d_preflight_finding f = judge_rank(p, k, r);
            bool slow = (f.median > 0 || f.expected > 0) && first_of(p, k, r) == r;
            if (!slow) /* wrong values are told of the rank that has them */
                f.median = f.expected = 0;
            f.wrong = c->wrong[r];
            if (slow || f.wrong > 0)
                s4d_push(*findings, n, cap, f);
        }
    }
    return n;
}
