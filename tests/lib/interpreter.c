/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's scheduler: which op of which rank runs next. */
#include "tests/lib/interpreter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/memory.h"
#include "tests/lib/interpreter_internal.h"
#include "tests/lib/numbers.h"

struct s4d_interpreter_options s4d_interpreter_options_default(void)
{
    struct s4d_interpreter_options o = {.loss_scale = 1, .weight_seed = 1, .hold = {-1, -1}};
    return o;
}

void s4d_fault(struct s4d_interpreter *in, int rank, int op, const char *format, ...)
{
    if (in->failed)
        return;
    in->failed = true;
    const struct s4d_op *o = &in->p->ops[op];
    char where[256], text[512];
    snprintf(where, sizeof where, "rank %d, stream %s, op %d (%s %s, layer %d, micro-batch %d)",
             rank, s4d_streams[o->stream].name, op, s4d_op_kinds[o->kind].name,
             o->label.name ? o->label.name : "", o->label.layer, o->label.micro_batch);
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    s4d_fail(&in->error, S4D_EXIT_BUG, where, "%s", text);
}

static void list_streams(struct s4d_interpreter *in)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        in->op_at[stream] = s4d_calloc((size_t)in->p->stream_length[stream], sizeof(int));
    for (int op = 0; op < in->p->n_ops; op++) {
        const struct s4d_op *o = &in->p->ops[op];
        S4D_ASSERT(o->position >= 0 && o->position < in->p->stream_length[o->stream],
                   "op %d has position %d in a stream of %d", op, o->position,
                   in->p->stream_length[o->stream]);
        in->op_at[o->stream][o->position] = op;
    }
}

struct s4d_interpreter *s4d_interpreter_create(const struct s4d_program *program,
                                               const struct s4d_interpreter_options *options)
{
    struct s4d_interpreter *in = s4d_calloc(1, sizeof *in);
    in->p = program;
    in->options = *options;
    in->ranks = s4d_grid_ranks(&program->grid);
    in->coordinate = s4d_calloc((size_t)in->ranks, sizeof *in->coordinate);
    for (int rank = 0; rank < in->ranks; rank++)
        s4d_grid_coordinates(&program->grid, rank, in->coordinate[rank]);
    in->done = s4d_calloc((size_t)in->ranks * S4D_STREAMS, sizeof *in->done);
    in->priority = s4d_calloc((size_t)in->ranks * S4D_STREAMS, sizeof *in->priority);
    in->random = options->order_seed;
    for (int i = 0; i < in->ranks * S4D_STREAMS; i++)
        in->priority[i] = (double)(s4d_random_next(&in->random) >> 11);
    list_streams(in);
    s4d_memory_create(in);
    s4d_state_create(in);
    return in;
}

void s4d_interpreter_free(struct s4d_interpreter *in)
{
    if (!in)
        return;
    s4d_memory_free(in);
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        free(in->op_at[stream]);
    free(in->coordinate);
    free(in->done);
    free(in->priority);
    free(in->loss);
    free(in->grad_norm);
    free(in);
}

/* The op at the head of a stream, and its iteration; -1 when the stream has finished. */
static int head_of(const struct s4d_interpreter *in, int rank, int stream, int *iteration)
{
    int64_t done = in->done[rank * S4D_STREAMS + stream];
    int length = in->p->stream_length[stream];
    if (length == 0 || done >= (int64_t)in->iterations * length)
        return -1;
    *iteration = (int)(done / length);
    return in->op_at[stream][done % length];
}

/* The first wait of an op that is not met; NULL if it may start. */
static const struct s4d_wait *unmet(const struct s4d_interpreter *in, int rank, int op,
                                    int iteration)
{
    const struct s4d_op *o = &in->p->ops[op];
    for (int w = 0; w < o->n_waits; w++) {
        const struct s4d_wait *wait = &o->waits[w];
        int64_t at = iteration + wait->iteration;
        if (at >= 0 && in->done[rank * S4D_STREAMS + wait->stream] <=
                           at * in->p->stream_length[wait->stream] + wait->position)
            return wait;
    }
    return NULL;
}

static bool is_collective(const struct s4d_op *op)
{
    return s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE;
}

/* The first member of the group that is not there yet; -1 if all are. */
static int missing_member(const struct s4d_interpreter *in, const int *members, int n, int op,
                          int iteration)
{
    int at = 0;
    for (int m = 0; m < n; m++)
        if (head_of(in, members[m], in->p->ops[op].stream, &at) != op || at != iteration ||
            unmet(in, members[m], op, iteration))
            return members[m];
    return -1;
}

static int group_of(const struct s4d_interpreter *in, int rank, int op, int *members)
{
    const struct s4d_op *o = &in->p->ops[op];
    if (is_collective(o))
        return s4d_group_members(&in->p->grid, rank, o->c.collective.axes, members);
    members[0] = rank;
    return 1;
}

/* Ops may run on this rank's stream now; a collective is taken by its group's first member. */
static bool runnable(const struct s4d_interpreter *in, int rank, int stream, int *members, int *op,
                     int *iteration)
{
    *op = head_of(in, rank, stream, iteration);
    if (*op < 0 || unmet(in, rank, *op, *iteration))
        return false;
    int n = group_of(in, rank, *op, members);
    return members[0] == rank && missing_member(in, members, n, *op, *iteration) < 0;
}

static double rank_of_choice(const struct s4d_interpreter *in, int rank, int op, int iteration)
{
    const struct s4d_op *o = &in->p->ops[op];
    if (o->stream == (enum s4d_stream)in->options.hold.stream &&
        o->position == in->options.hold.position)
        return -INFINITY;
    if (in->options.order_seed)
        return in->priority[rank * S4D_STREAMS + o->stream];
    return -((double)iteration * in->p->n_ops + op) * in->ranks - rank;
}

static void record(struct s4d_interpreter *in, int rank, int op, int iteration)
{
    const struct s4d_op *o = &in->p->ops[op];
    double *kept = o->kind == S4D_OP_LOSS_MEAN     ? in->loss
                   : o->kind == S4D_OP_CLIP_FACTOR ? in->grad_norm
                                                   : NULL;
    if (!kept || in->failed)
        return;
    int tensor = o->operand[o->kind == S4D_OP_LOSS_MEAN ? 2 : 1].tensor;
    double value = s4d_interpreter_get(in, rank, tensor, 0);
    if (isnan(kept[iteration]))
        kept[iteration] = value;
    else if (value != kept[iteration] && !isnan(value))
        s4d_fault(in, rank, op, "reports %.17g, another rank %.17g", value, kept[iteration]);
}

/* Runs an op on all members of its group. A long stretch in which some streams stay behind finds
 * more than evenly mixed turns: priorities stay as drawn until a rare redraw. */
static void perform(struct s4d_interpreter *in, int op, int iteration, const int *members, int n)
{
    struct s4d_turn *turns = s4d_calloc((size_t)n, sizeof *turns);
    for (int m = 0; m < n; m++) {
        turns[m] =
            (struct s4d_turn){.in = in, .rank = members[m], .op = op, .iteration = iteration};
        s4d_memory_before(in, members[m], op, iteration);
    }
    if (is_collective(&in->p->ops[op]))
        s4d_collective_run(turns, n);
    else
        s4d_kernel_run(turns);
    for (int m = 0; m < n; m++) {
        record(in, members[m], op, iteration);
        s4d_memory_after(in, members[m], op, iteration);
        in->done[members[m] * S4D_STREAMS + in->p->ops[op].stream]++;
    }
    if (s4d_random_next(&in->random) % 8 == 0)
        in->priority[s4d_random_next(&in->random) % (uint64_t)(in->ranks * S4D_STREAMS)] =
            (double)(s4d_random_next(&in->random) >> 11);
    free(turns);
}

static bool step(struct s4d_interpreter *in, int *members)
{
    int best = -1, best_op = 0, best_iteration = 0, op, iteration;
    double best_choice = 0;
    for (int i = 0; i < in->ranks * S4D_STREAMS; i++) {
        int rank = i / S4D_STREAMS, stream = i % S4D_STREAMS;
        if (in->p->stream_length[stream] == 0 ||
            !runnable(in, rank, stream, members, &op, &iteration))
            continue;
        double choice = rank_of_choice(in, rank, op, iteration);
        if (best >= 0 && choice <= best_choice)
            continue;
        best = rank;
        best_op = op;
        best_iteration = iteration;
        best_choice = choice;
    }
    if (best >= 0)
        perform(in, best_op, best_iteration, members, group_of(in, best, best_op, members));
    return best >= 0;
}

/* Nothing can run: follows what each op waits for until it comes round, and reports the last. */
static void report_stuck(struct s4d_interpreter *in, int rank, int stream, int *members)
{
    for (int hops = in->ranks * S4D_STREAMS;; hops--) {
        int iteration, op = head_of(in, rank, stream, &iteration);
        const struct s4d_wait *wait = unmet(in, rank, op, iteration);
        if (wait && (hops <= 0 || head_of(in, rank, wait->stream, &(int){0}) < 0)) {
            s4d_fault(in, rank, op,
                      "stuck in iteration %d: waits for op %d of stream %s of iteration %d, which "
                      "cannot run",
                      iteration, wait->position, s4d_streams[wait->stream].name,
                      iteration + wait->iteration);
            return;
        }
        if (wait) {
            stream = (int)wait->stream;
            continue;
        }
        int n = group_of(in, rank, op, members);
        int absent = missing_member(in, members, n, op, iteration);
        if (hops <= 0 || head_of(in, absent, stream, &(int){0}) != op) {
            s4d_fault(in, rank, op, "stuck in iteration %d: rank %d does not come", iteration,
                      absent);
            return;
        }
        rank = absent;
    }
}

static void grow(struct s4d_interpreter *in, int iterations)
{
    size_t per_iteration = (size_t)in->ranks * (size_t)in->p->n_storages;
    int total = in->iterations + iterations;
    in->used = s4d_realloc(in->used, (size_t)total * per_iteration * sizeof *in->used);
    in->loss = s4d_realloc(in->loss, (size_t)total * sizeof *in->loss);
    in->grad_norm = s4d_realloc(in->grad_norm, (size_t)total * sizeof *in->grad_norm);
    for (size_t i = (size_t)in->iterations * per_iteration; i < (size_t)total * per_iteration; i++)
        in->used[i] = 0;
    for (int i = in->iterations; i < total; i++)
        in->loss[i] = in->grad_norm[i] = NAN;
    in->iterations = total;
}

int s4d_interpreter_run(struct s4d_interpreter *in, int iterations, struct s4d_error *err)
{
    int *members = s4d_malloc((size_t)in->ranks * sizeof *members), iteration;
    grow(in, iterations);
    while (!in->failed && step(in, members))
        ;
    for (int i = 0; i < in->ranks * S4D_STREAMS && !in->failed; i++)
        if (head_of(in, i / S4D_STREAMS, i % S4D_STREAMS, &iteration) >= 0)
            report_stuck(in, i / S4D_STREAMS, i % S4D_STREAMS, members);
    free(members);
    if (in->failed && err)
        *err = in->error;
    return in->failed ? -1 : 0;
}

double s4d_interpreter_loss(const struct s4d_interpreter *in, int iteration)
{
    return in->loss[iteration];
}

double s4d_interpreter_grad_norm(const struct s4d_interpreter *in, int iteration)
{
    return in->grad_norm[iteration];
}
