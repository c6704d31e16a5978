/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/pipe.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/plan.h"
#include "support/half.h"
#include "support/memory.h"
#include "tests/lib/handmade.h"

const char *const pipe_names[PIPE_PATTERNS] = {"ring", "both", "lines", "sums"};

/* Tensors of every stage: own, what came from the stage before, and of its first numbers a view, a
 * copy in bf16, and what came of the stage after. */
enum { OWN = PIPE_OWN, LEFT, HEAD, SMALL, RIGHT };

struct making {
    struct s4d_program *p;
    int n, stages, batch;
};

static void open_stage(struct making *k)
{
    struct s4d_program *p = k->p;
    p->loss = p->grad_norm = p->lr = p->step = p->loss_scale = p->denominator = p->found_inf =
        p->tokens_host = -1;
    p->options.precision = S4D_F32;
    p->options.global_batch = 1;
    int own = handmade_storage(p, 4 * k->n, true), left = handmade_storage(p, 4 * k->n, false);
    handmade_tensor(p, own, S4D_F32, 0, k->n);
    handmade_tensor(p, left, S4D_F32, 0, k->n);
    handmade_tensor(p, own, S4D_F32, 0, k->n / 4);
    handmade_tensor(p, handmade_storage(p, k->n / 2, false), S4D_BF16, 0, k->n / 4);
    handmade_tensor(p, handmade_storage(p, k->n / 2, false), S4D_BF16, 0, k->n / 4);
}

static void name(struct making *k, int op, const char *text)
{
    k->p->ops[op].label.name = text;
}

static void message(struct making *k, enum s4d_op_kind kind, enum s4d_stream stream,
                    enum s4d_pipe_channel channel, int tensor)
{
    int op = handmade_op(k->p, kind, stream, &tensor, 1), up = kind == S4D_OP_SEND ? 1 : -1;
    int last = k->stages - 1;
    union s4d_constants *c = &k->p->ops[op].c;
    c->message.channel = channel;
    c->message.peer = channel == S4D_CHANNEL_FORWARD    ? up
                      : channel == S4D_CHANNEL_BACKWARD ? -up
                      : k->p->stage == 0                ? last
                                                        : -last;
    c->message.type = k->p->tensors[tensor].type;
    c->message.count = s4d_tensor_elements(&k->p->tensors[tensor]);
    k->p->ops[op].batch = k->batch;
    name(k, op, tensor == OWN || tensor == LEFT ? "numbers" : "small");
}

static void compute(struct making *k, enum s4d_op_kind kind, int from, int to, const char *text)
{
    name(k, handmade_op(k->p, kind, S4D_STREAM_COMPUTE, (const int[]){from, to}, 2), text);
}

static void ring(struct making *k)
{
    bool first = k->p->stage == 0, last = k->p->stage == k->stages - 1;
    message(k, S4D_OP_SEND, S4D_STREAM_P2P_FORWARD, last ? S4D_CHANNEL_ENDS : S4D_CHANNEL_FORWARD,
            OWN);
    message(k, S4D_OP_RECEIVE, S4D_STREAM_P2P_FORWARD,
            first ? S4D_CHANNEL_ENDS : S4D_CHANNEL_FORWARD, LEFT);
    compute(k, S4D_OP_ADD, LEFT, OWN, "own");
}

static void both(struct making *k)
{
    bool first = k->p->stage == 0, last = k->p->stage == k->stages - 1;
    enum s4d_stream stream = S4D_STREAM_P2P_FORWARD;
    compute(k, S4D_OP_CAST, HEAD, SMALL, "small");
    if (!last)
        message(k, S4D_OP_SEND, stream, S4D_CHANNEL_FORWARD, OWN);
    if (!first)
        message(k, S4D_OP_SEND, stream, S4D_CHANNEL_BACKWARD, SMALL);
    if (!first)
        message(k, S4D_OP_RECEIVE, stream, S4D_CHANNEL_FORWARD, LEFT);
    if (!last)
        message(k, S4D_OP_RECEIVE, stream, S4D_CHANNEL_BACKWARD, RIGHT);
    if (!first)
        compute(k, S4D_OP_ADD, LEFT, OWN, "own");
    if (!last)
        compute(k, S4D_OP_ADD, RIGHT, HEAD, "own");
}

static void lines(struct making *k)
{
    bool first = k->p->stage == 0, last = k->p->stage == k->stages - 1;
    k->batch = 0;
    if (!first) {
        message(k, S4D_OP_RECEIVE, S4D_STREAM_P2P_FORWARD, S4D_CHANNEL_FORWARD, LEFT);
        compute(k, S4D_OP_ADD, LEFT, OWN, "own");
    }
    if (!last) {
        message(k, S4D_OP_SEND, S4D_STREAM_P2P_FORWARD, S4D_CHANNEL_FORWARD, OWN);
        message(k, S4D_OP_RECEIVE, S4D_STREAM_P2P_BACKWARD, S4D_CHANNEL_BACKWARD, RIGHT);
        compute(k, S4D_OP_ADD, RIGHT, HEAD, "own");
    }
    compute(k, S4D_OP_CAST, HEAD, SMALL, "small");
    if (!first)
        message(k, S4D_OP_SEND, S4D_STREAM_P2P_BACKWARD, S4D_CHANNEL_BACKWARD, SMALL);
}

static void sums(struct making *k)
{
    compute(k, S4D_OP_CAST, HEAD, SMALL, "small");
    for (int i = 0; i < 2; i++) {
        int tensor = i == 0 ? OWN : SMALL;
        int op =
            handmade_op(k->p, S4D_OP_ALL_REDUCE, S4D_STREAM_Y, (const int[]){tensor, tensor}, 2);
        struct s4d_op *x = &k->p->ops[op];
        x->c.collective.axes = s4d_streams[S4D_STREAM_Y].axes;
        x->c.collective.members = k->p->grid.size[S4D_Y];
        x->c.collective.type = k->p->tensors[tensor].type;
        x->c.collective.count = s4d_tensor_elements(&k->p->tensors[tensor]);
        x->batch = k->batch;
        name(k, op, i == 0 ? "numbers" : "small");
    }
    compute(k, S4D_OP_ADD, SMALL, HEAD, "own");
}

void pipe_make(struct pipe *pipe, enum pipe_pattern pattern, const struct s4d_grid *grid, int n,
               bool batched)
{
    static void (*const patterns[])(struct making *) = {ring, both, lines, sums};
    pipe->stages = grid->size[S4D_PIPE];
    pipe->n = n;
    S4D_ASSERT(pipe->stages <= PIPE_STAGES && n % 4 == 0, "%d stages", pipe->stages);
    for (int stage = 0; stage < pipe->stages; stage++) {
        struct s4d_program *p = &pipe->program[stage];
        struct making k = {.p = p, .n = n, .stages = pipe->stages, .batch = batched};
        *p = handmade();
        p->grid = *grid;
        p->stage = stage;
        p->stages = pipe->list;
        pipe->list[stage] = p;
        open_stage(&k);
        patterns[pattern](&k);
        s4d_order(p, NULL, 0);
        s4d_plan(p);
    }
}

void pipe_free(struct pipe *pipe)
{
    for (int stage = 0; stage < pipe->stages; stage++)
        s4d_program_free(&pipe->program[stage]);
}

float pipe_initial(int rank, int i)
{
    return (float)((rank * 3 + i) % 4);
}

/* The rank `by` further along an axis, round it. */
static int beside(const struct s4d_grid *grid, int rank, enum s4d_axis axis, int by)
{
    int c[S4D_AXES], size = grid->size[axis];
    s4d_grid_coordinates(grid, rank, c);
    c[axis] = (c[axis] + by + size) % size;
    return s4d_grid_rank(grid, c);
}

static float rounded(float x)
{
    return s4d_bf16_value(s4d_bf16_of(x));
}

/* own of `rank` after one more iteration, of those before it. */
static void advance(enum pipe_pattern pattern, const struct s4d_grid *grid, int rank, int n,
                    const float *before, float *own)
{
    int c[S4D_AXES], stages = grid->size[S4D_PIPE];
    s4d_grid_coordinates(grid, rank, c);
    int stage = c[S4D_PIPE];
    for (int i = 0; i < n; i++) {
        float *to = &own[rank * n + i];
#define OF(other) before[(other)*n + i]
        *to = OF(rank);
        bool head = i < n / 4;
        if (pattern == PIPE_RING || (pattern == PIPE_BOTH && stage > 0))
            *to += OF(beside(grid, rank, S4D_PIPE, -1));
        if (pattern == PIPE_BOTH && stage < stages - 1 && head)
            *to += rounded(OF(beside(grid, rank, S4D_PIPE, 1)));
        for (int k = 1; pattern == PIPE_LINES && k <= stage; k++)
            *to += OF(beside(grid, rank, S4D_PIPE, -k));
        for (int k = 1; pattern == PIPE_SUMS && k < grid->size[S4D_Y]; k++)
            *to += OF(beside(grid, rank, S4D_Y, k));
        if (pattern == PIPE_SUMS && head) {
            float small = rounded(OF(rank));
            for (int k = 1; k < grid->size[S4D_Y]; k++)
                small = rounded(small + rounded(OF(beside(grid, rank, S4D_Y, k))));
            *to += small;
        }
#undef OF
    }
}

void pipe_expected(enum pipe_pattern pattern, const struct s4d_grid *grid, int n, int iterations,
                   float *own)
{
    int ranks = s4d_grid_ranks(grid);
    size_t bytes = (size_t)ranks * (size_t)n * sizeof *own;
    float *before = s4d_malloc(bytes);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < n; i++)
            own[r * n + i] = pipe_initial(r, i);
    for (int k = 0; k < iterations; k++) {
        memcpy(before, own, bytes);
        for (int r = 0; r < ranks; r++)
            advance(pattern, grid, r, n, before, own);
        /* From the last stage down: each adds what the one after it has by then. */
        for (int stage = grid->size[S4D_PIPE] - 2; pattern == PIPE_LINES && stage >= 0; stage--)
            for (int r = 0; r < ranks; r++) {
                int c[S4D_AXES];
                s4d_grid_coordinates(grid, r, c);
                for (int i = 0; c[S4D_PIPE] == stage && i < n / 4; i++)
                    own[r * n + i] += rounded(own[beside(grid, r, S4D_PIPE, 1) * n + i]);
            }
    }
    free(before);
}
