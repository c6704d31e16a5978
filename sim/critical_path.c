/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/critical_path.h"

#include <stdlib.h>

#include "support/memory.h"

const char *const s4d_step_causes[] = {"stream", "data", "memory", "order"};

/* An op of one class. */
struct at {
    int rank_class, iteration, op;
};

struct search {
    const struct s4d_trace *t;
    const struct s4d_program_index *index;
};

static const struct s4d_span *span_of(const struct search *s, const struct at *at)
{
    return s4d_trace_span(s->t, at->rank_class, at->iteration, at->op);
}

static int op_at(const struct search *s, int stream, int position)
{
    return (int)(s->index->order[stream][position] - s->t->program->ops);
}

/* Whether the op at position `position` of `stream`, counted over both iterations, ended at time_s
 * on that class. */
static bool ended_at(const struct search *s, int rank_class, int stream, int position,
                     double time_s, struct at *found)
{
    if (position < 0)
        return false;
    int length = s->t->program->stream_length[stream];
    *found = (struct at){rank_class, position / length, op_at(s, stream, position % length)};
    return span_of(s, found)->end_s == time_s;
}

/* What `at` started on, on this class. false: nothing that ended when it started. */
static bool before_on(const struct search *s, const struct at *at, int rank_class, double start_s,
                      struct at *found, enum s4d_step_cause *cause)
{
    static const enum s4d_step_cause causes[] = {[S4D_WAIT_DATA] = S4D_STEP_DATA,
                                                 [S4D_WAIT_MEMORY] = S4D_STEP_MEMORY,
                                                 [S4D_WAIT_ORDER] = S4D_STEP_ORDER};
    const struct s4d_op *op = &s->t->program->ops[at->op];
    const int *length = s->t->program->stream_length;
    *cause = S4D_STEP_STREAM;
    if (ended_at(s, rank_class, (int)op->stream,
                 at->iteration * length[op->stream] + op->position - 1, start_s, found))
        return true;
    for (int i = 0; i < op->n_waits; i++) {
        const struct s4d_wait *w = &op->waits[i];
        int iteration = at->iteration + w->iteration;
        *cause = causes[w->kind];
        if (iteration >= 0 && ended_at(s, rank_class, (int)w->stream,
                                       iteration * length[w->stream] + w->position, start_s, found))
            return true;
    }
    return false;
}

/* The same of a collective: of the member that came last. */
static bool before(const struct search *s, const struct at *at, struct at *found,
                   enum s4d_step_cause *cause)
{
    const struct s4d_op *op = &s->t->program->ops[at->op];
    double start_s = span_of(s, at)->start_s;
    if (before_on(s, at, at->rank_class, start_s, found, cause))
        return true;
    if (s4d_op_kinds[op->kind].op_class != S4D_CLASS_COLLECTIVE)
        return false;
    const struct s4d_system *system = s->t->system;
    const struct s4d_group_class *g =
        &system->groups[system->ranks[at->rank_class].group[op->stream]];
    for (int i = 0; i < g->n_members; i++)
        if (before_on(s, at, g->member[i], start_s, found, cause))
            return true;
    return false;
}

/* The op that ends the second iteration; of several the lowest class's, the last in the list. */
static struct at last_op(const struct search *s)
{
    struct at at = {.iteration = 1};
    for (int r = 0; r < s->t->system->n_ranks; r++)
        for (int op = s->t->program->n_ops - 1; op >= 0; op--) {
            at.rank_class = r;
            at.op = op;
            if (s->index->ends[op] && span_of(s, &at)->end_s == s->t->close_s)
                return at;
        }
    S4D_ASSERT(false, "no op ends at %.17g", s->t->close_s);
    return at;
}

static void reverse(struct s4d_critical_path *path)
{
    for (int i = 0, j = path->n - 1; i < j; i++, j--) {
        struct s4d_step step = path->step[i];
        path->step[i] = path->step[j];
        path->step[j] = step;
    }
}

void s4d_critical_path_find(struct s4d_critical_path *path, const struct s4d_trace *t,
                            const struct s4d_program_index *index)
{
    struct search s = {t, index};
    struct at at = last_op(&s), found;
    *path = (struct s4d_critical_path){0};
    for (bool more = true; more; at = found) {
        const struct s4d_span *span = span_of(&s, &at);
        struct s4d_step step = {.rank_class = at.rank_class,
                                .iteration = at.iteration,
                                .op = at.op,
                                .start_s = span->start_s,
                                .end_s = span->end_s};
        bool any = before(&s, &at, &found, &step.cause);
        step.last_member = any ? found.rank_class : at.rank_class;
        more = span->start_s > t->open_s;
        S4D_ASSERT(any || !more, "op %d of class %d started on nothing", at.op, at.rank_class);
        if (!more)
            step.start_s = t->open_s;
        s4d_push(path->step, path->n, path->cap, step);
    }
    reverse(path);
}

void s4d_critical_path_free(struct s4d_critical_path *path)
{
    free(path->step);
    *path = (struct s4d_critical_path){0};
}

static void write_number_or_dash(int number, FILE *out)
{
    if (number >= 0)
        fprintf(out, "%d\t", number);
    else
        fputs("-\t", out);
}

void s4d_critical_path_write(const struct s4d_critical_path *path, const struct s4d_trace *t,
                             FILE *out)
{
    fputs("start_ms\tend_ms\ttime_us\trank\tstream\tphase\tlayer\tmicro_batch\top\tname\tcause\t"
          "last_rank\n",
          out);
    for (int i = 0; i < path->n; i++) {
        const struct s4d_step *s = &path->step[i];
        const struct s4d_op *op = &t->program->ops[s->op];
        const struct s4d_rank_class *ranks = t->system->ranks;
        fprintf(out, "%.9f\t%.9f\t%.6f\t%d\t%s\t%s\t", 1e3 * (s->start_s - t->open_s),
                1e3 * (s->end_s - t->open_s), 1e6 * (s->end_s - s->start_s),
                ranks[s->rank_class].representative, s4d_streams[op->stream].name,
                s4d_phase_names[op->label.phase]);
        write_number_or_dash(op->label.layer, out);
        write_number_or_dash(op->label.micro_batch, out);
        fprintf(out, "%s\t%s\t%s\t%d\n", s4d_op_kinds[op->kind].name,
                op->label.name ? op->label.name : "-", s4d_step_causes[s->cause],
                ranks[s->last_member].representative);
    }
}
