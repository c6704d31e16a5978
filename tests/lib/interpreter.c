/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's scheduler: which of those that may go on runs next. */
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
    const struct s4d_op *o = s4d_rank_op(in, rank, op);
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

static void list_streams(const struct s4d_program *p, struct s4d_stage *stage)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        stage->op_at[stream] = s4d_calloc((size_t)p->stream_length[stream], sizeof(int));
    for (int op = 0; op < p->n_ops; op++) {
        const struct s4d_op *o = &p->ops[op];
        S4D_ASSERT(o->position >= 0 && o->position < p->stream_length[o->stream],
                   "op %d has position %d in a stream of %d", op, o->position,
                   p->stream_length[o->stream]);
        stage->op_at[o->stream][o->position] = op;
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
    in->programs = s4d_calloc((size_t)in->ranks, sizeof(*in->programs));
    for (int rank = 0; rank < in->ranks; rank++) {
        s4d_grid_coordinates(&program->grid, rank, in->coordinate[rank]);
        in->programs[rank] = s4d_stage_program(program, in->coordinate[rank][S4D_PIPE]);
    }
    in->done = s4d_calloc((size_t)in->ranks * S4D_STREAMS, sizeof *in->done);
    in->heads = s4d_calloc((size_t)in->ranks * S4D_STREAMS, sizeof *in->heads);
    in->priority = s4d_calloc((size_t)in->ranks * S4D_STREAMS, sizeof *in->priority);
    in->random = options->order_seed;
    for (int i = 0; i < in->ranks * S4D_STREAMS; i++)
        in->priority[i] = (double)(s4d_random_next(&in->random) >> 11);
    in->stages = s4d_calloc((size_t)program->grid.size[S4D_PIPE], sizeof *in->stages);
    for (int stage = 0; stage < program->grid.size[S4D_PIPE]; stage++)
        list_streams(s4d_stage_program(program, stage), &in->stages[stage]);
    in->met = s4d_calloc((size_t)in->ranks, sizeof(*in->met));
    for (int rank = 0; rank < in->ranks; rank++)
        in->met[rank] = s4d_calloc((size_t)s4d_rank_program(in, rank)->n_ops + 1, sizeof(bool));
    s4d_memory_create(in);
    s4d_state_create(in);
    return in;
}

void s4d_interpreter_free(struct s4d_interpreter *in)
{
    if (!in)
        return;
    s4d_memory_free(in);
    for (int rank = 0; rank < in->ranks; rank++)
        free(in->met[rank]);
    for (int i = 0; i < in->p->grid.size[S4D_PIPE] * S4D_STREAMS; i++)
        free(in->stages[i / S4D_STREAMS].op_at[i % S4D_STREAMS]);
    free(in->met);
    free(in->stages);
    free(in->programs);
    free(in->coordinate);
    free(in->done);
    free(in->heads);
    free(in->priority);
    free(in->loss);
    free(in->grad_norm);
    free(in);
}

static double rank_of_choice(const struct s4d_interpreter *in, int rank, int op, int iteration)
{
    const struct s4d_op *o = s4d_rank_op(in, rank, op);
    if (o->stream == (enum s4d_stream)in->options.hold.stream &&
        o->position == in->options.hold.position)
        return -INFINITY;
    if (in->options.order_seed)
        return in->priority[rank * S4D_STREAMS + o->stream];
    return -((double)iteration * in->p->n_ops + op) * in->ranks - rank;
}

static void record(struct s4d_interpreter *in, int rank, int op, int iteration)
{
    const struct s4d_op *o = s4d_rank_op(in, rank, op);
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

/* The op has happened; with the last of a batch all of that have completed. */
static void complete(struct s4d_interpreter *in, int rank, int op)
{
    const struct s4d_program *p = s4d_rank_program(in, rank);
    int first = p->ops[op].batch == 0 ? op : s4d_batch_first(p, op), last = s4d_post_end(p, op);
    in->met[rank][op] = true;
    for (int i = first; i <= last; i++)
        if (!in->met[rank][i])
            return;
    for (int i = first; i <= last; i++)
        in->met[rank][i] = false;
    in->done[rank * S4D_STREAMS + p->ops[op].stream] += last - first + 1;
    s4d_head_find(in, rank, (int)p->ops[op].stream);
}

/* Runs an op on all who meet at it. A long stretch in which some streams stay behind finds more
 * than evenly mixed turns: priorities stay as drawn until a rare redraw. */
static void perform(struct s4d_interpreter *in, const struct s4d_meeting *m)
{
    struct s4d_turn *turns = s4d_calloc((size_t)m->n, sizeof *turns);
    const struct s4d_op *o = s4d_rank_op(in, m->rank[0], m->op[0]);
    for (int i = 0; i < m->n; i++) {
        turns[i] = (struct s4d_turn){
            .in = in, .rank = m->rank[i], .op = m->op[i], .iteration = m->iteration};
        s4d_memory_before(in, m->rank[i], m->op[i], m->iteration);
    }
    if (s4d_is_collective(o))
        s4d_collective_run(turns, m->n);
    else if (s4d_is_message(o))
        s4d_message_run(turns);
    else
        s4d_kernel_run(turns);
    for (int i = 0; i < m->n; i++) {
        record(in, m->rank[i], m->op[i], m->iteration);
        s4d_memory_after(in, m->rank[i], m->op[i], m->iteration);
        complete(in, m->rank[i], m->op[i]);
    }
    if (s4d_random_next(&in->random) % 8 == 0)
        in->priority[s4d_random_next(&in->random) % (uint64_t)(in->ranks * S4D_STREAMS)] =
            (double)(s4d_random_next(&in->random) >> 11);
    free(turns);
}

static bool step(struct s4d_interpreter *in, struct s4d_meeting *m)
{
    int best = -1;
    double best_choice = 0;
    for (int i = 0; i < in->ranks * S4D_STREAMS; i++) {
        int rank = i / S4D_STREAMS, stream = i % S4D_STREAMS, iteration;
        int head = s4d_head_of(in, rank, stream, &iteration);
        double choice = head < 0 ? 0 : rank_of_choice(in, rank, head, iteration);
        if (head < 0 || (best >= 0 && choice <= best_choice) || !s4d_runnable(in, rank, stream, m))
            continue;
        best = i;
        best_choice = choice;
    }
    if (best >= 0 && s4d_runnable(in, best / S4D_STREAMS, best % S4D_STREAMS, m))
        perform(in, m);
    return best >= 0;
}

static void grow(struct s4d_interpreter *in, int iterations)
{
    size_t per_iteration = (size_t)in->ranks * (size_t)in->n_storages;
    int total = in->iterations + iterations;
    in->used = s4d_realloc(in->used, (size_t)total * per_iteration * sizeof *in->used);
    in->loss = s4d_realloc(in->loss, (size_t)total * sizeof *in->loss);
    in->grad_norm = s4d_realloc(in->grad_norm, (size_t)total * sizeof *in->grad_norm);
    for (size_t i = (size_t)in->iterations * per_iteration; i < (size_t)total * per_iteration; i++)
        in->used[i] = 0;
    for (int i = in->iterations; i < total; i++)
        in->loss[i] = in->grad_norm[i] = NAN;
    in->iterations = total;
    for (int i = 0; i < in->ranks * S4D_STREAMS; i++)
        s4d_head_find(in, i / S4D_STREAMS, i % S4D_STREAMS);
}

int s4d_interpreter_run(struct s4d_interpreter *in, int iterations, struct s4d_error *err)
{
    struct s4d_meeting m = {.rank = s4d_malloc(((size_t)in->ranks + 1) * sizeof(int)),
                            .op = s4d_malloc(((size_t)in->ranks + 1) * sizeof(int))};
    int iteration;
    grow(in, iterations);
    while (!in->failed && step(in, &m))
        ;
    for (int i = 0; i < in->ranks * S4D_STREAMS && !in->failed; i++)
        if (s4d_head_of(in, i / S4D_STREAMS, i % S4D_STREAMS, &iteration) >= 0)
            s4d_stuck(in, i / S4D_STREAMS, i % S4D_STREAMS, &m);
    free(m.rank);
    free(m.op);
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
