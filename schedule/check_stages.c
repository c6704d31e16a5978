/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a pipe together: that what they send is what they receive, and that they never wait
 * for each other for ever. All ranks of a stage do the same, so one of each stands for all. */
#include <stdlib.h>
#include <string.h>

#include "schedule/check.h"
#include "schedule/check_operands.h" /* for: s4d_check_fail */
#include "support/memory.h"

static int check_grids(const struct s4d_program *first, struct s4d_error *err)
{
    for (int stage = 0; stage < first->grid.size[S4D_PIPE]; stage++) {
        const struct s4d_program *p = s4d_stage_program(first, stage);
        if (first->stages && (p->stage != stage || p->stages != first->stages))
            return s4d_fail(err, S4D_EXIT_BUG, "pipe",
                            "the program of stage %d is one of stage %d, or of other stages", stage,
                            p->stage);
        if (memcmp(&p->grid, &first->grid, sizeof p->grid) != 0)
            return s4d_fail(err, S4D_EXIT_BUG, "pipe", "stage %d has another grid", stage);
    }
    return 0;
}

static bool is_message(const struct s4d_op *x)
{
    return s4d_op_kinds[x->kind].op_class == S4D_CLASS_MESSAGE;
}

/* A channel whose messages take two streams has no order. */
static int check_channels(const struct s4d_program *first, struct s4d_error *err)
{
    int stream[S4D_CHANNELS] = {-1, -1, -1};
    for (int stage = 0; stage < first->grid.size[S4D_PIPE]; stage++) {
        const struct s4d_program *p = s4d_stage_program(first, stage);
        for (int i = 0; i < p->n_ops; i++) {
            const struct s4d_op *x = &p->ops[i];
            int *of = is_message(x) ? &stream[x->c.message.channel] : NULL;
            if (of && *of >= 0 && *of != (int)x->stream)
                return s4d_check_fail(p, i, err, "stage %d: channel %s has messages on %s, too",
                                      stage, s4d_channel_names[x->c.message.channel],
                                      s4d_streams[*of].name);
            if (of)
                *of = (int)x->stream;
        }
    }
    return 0;
}

/* From list index i on, the next message of this kind and stream with the stage `peer` away; n_ops:
 * there is none. */
static int next_message(const struct s4d_program *p, int i, enum s4d_op_kind kind,
                        enum s4d_stream stream, int peer)
{
    while (i < p->n_ops && !(p->ops[i].kind == kind && p->ops[i].stream == stream &&
                             p->ops[i].c.message.peer == peer))
        i++;
    return i;
}

/* What stage a sends the stage `peer` away on a stream is what that receives of it. */
static int check_pair(const struct s4d_program *a, int peer, enum s4d_stream stream,
                      struct s4d_error *err)
{
    const struct s4d_program *b = s4d_stage_program(a, a->stage + peer);
    for (int i = -1, k = -1;;) {
        i = next_message(a, i + 1, S4D_OP_SEND, stream, peer);
        k = next_message(b, k + 1, S4D_OP_RECEIVE, stream, -peer);
        if (i == a->n_ops && k == b->n_ops)
            return 0;
        if (k == b->n_ops)
            return s4d_check_fail(a, i, err, "stage %d sends it, stage %d does not receive it",
                                  a->stage, b->stage);
        if (i == a->n_ops)
            return s4d_check_fail(b, k, err, "stage %d receives it, stage %d does not send it",
                                  b->stage, a->stage);
        const union s4d_constants *s = &a->ops[i].c, *r = &b->ops[k].c;
        if (s->message.channel != r->message.channel || s->message.type != r->message.type ||
            s->message.count != r->message.count)
            return s4d_check_fail(
                a, i, err,
                "stage %d sends %lld %s on channel %s, stage %d receives %lld %s "
                "on channel %s by op %d",
                a->stage, (long long)s->message.count, s4d_type_names[s->message.type],
                s4d_channel_names[s->message.channel], b->stage, (long long)r->message.count,
                s4d_type_names[r->message.type], s4d_channel_names[r->message.channel], k);
    }
}

static int check_pairs(const struct s4d_program *first, struct s4d_error *err)
{
    int last = first->grid.size[S4D_PIPE] - 1;
    for (int a = 0; a <= last; a++) {
        const int to[4] = {a - 1, a + 1, 0, last};
        for (int i = 0; i < 4; i++)
            for (int s = 0; s < S4D_STREAMS; s++)
                if (to[i] >= 0 && to[i] <= last && to[i] != a &&
                    s4d_streams[s].axes == S4D_AXIS(S4D_PIPE) &&
                    check_pair(s4d_stage_program(first, a), to[i] - a, (enum s4d_stream)s, err))
                    return -1;
    }
    return 0;
}

/* A walk of all stages through two iterations, in which a post goes on once every message of it has
 * its peer's. Nothing ever takes a choice away, so if this walk comes to the end all do. */
struct walking {
    const struct s4d_program *first;
    int stages;
    int *at[S4D_STREAMS];        /* by stage: list indices by position, stage after stage */
    int *base[S4D_STREAMS];      /* by stage: where its list indices begin */
    int (*done)[S4D_STREAMS];    /* by stage: ops, over both iterations */
    bool (*posted)[S4D_STREAMS]; /* by stage: the post at the stream's head has begun */
    int *begun; /* [kind - send][stream][stage][peer stage]: messages that have begun */
};
enum { ITERATIONS = 2 };

static const struct s4d_program *program_of(const struct walking *w, int stage)
{
    return s4d_stage_program(w->first, stage);
}

/* The op at a stream's head; -1: none is left. */
static int head_of(const struct walking *w, int stage, int stream, int *iteration)
{
    int length = program_of(w, stage)->stream_length[stream], done = w->done[stage][stream];
    if (done == ITERATIONS * length)
        return -1;
    *iteration = done / length;
    return w->at[stream][w->base[stream][stage] + done % length];
}

static bool waits_met(const struct walking *w, int stage, int first, int last, int iteration)
{
    const struct s4d_program *p = program_of(w, stage);
    for (int i = first; i <= last; i++)
        for (int k = 0; k < p->ops[i].n_waits; k++) {
            const struct s4d_wait *wait = &p->ops[i].waits[k];
            int of = iteration + wait->iteration;
            if (of >= 0 && w->done[stage][wait->stream] <=
                               of * p->stream_length[wait->stream] + wait->position)
                return false;
        }
    return true;
}

static int *begun(const struct walking *w, enum s4d_op_kind kind, enum s4d_stream stream, int stage,
                  int peer)
{
    size_t n = (size_t)w->stages;
    size_t row = ((size_t)(kind - S4D_OP_SEND) * S4D_STREAMS + (size_t)stream) * n + (size_t)stage;
    return &w->begun[row * n + (size_t)peer];
}

/* The first op of a post that has begun whose peer has not begun its part; -1: none. Of several
 * messages with a peer the last is the one to ask for. */
static int unmatched(const struct walking *w, int stage, int first, int last)
{
    const struct s4d_program *p = program_of(w, stage);
    for (int i = first; i <= last; i++) {
        const struct s4d_op *x = &p->ops[i];
        if (!is_message(x))
            continue;
        int peer = stage + x->c.message.peer;
        enum s4d_op_kind other = x->kind == S4D_OP_SEND ? S4D_OP_RECEIVE : S4D_OP_SEND;
        if (*begun(w, other, x->stream, peer, stage) < *begun(w, x->kind, x->stream, stage, peer))
            return i;
    }
    return -1;
}

/* Whether the post at a stream's head has begun or ended now. */
static bool step(struct walking *w, int stage, int stream)
{
    const struct s4d_program *p = program_of(w, stage);
    int iteration, first = head_of(w, stage, stream, &iteration);
    if (first < 0)
        return false;
    int last = s4d_batch_last(p, first);
    bool begins = !w->posted[stage][stream];
    if (begins && !waits_met(w, stage, first, last, iteration))
        return false;
    for (int i = first; begins && i <= last; i++)
        if (is_message(&p->ops[i]))
            ++*begun(w, p->ops[i].kind, p->ops[i].stream, stage, stage + p->ops[i].c.message.peer);
    w->posted[stage][stream] = true;
    if (unmatched(w, stage, first, last) >= 0)
        return begins;
    w->posted[stage][stream] = false;
    w->done[stage][stream] += last - first + 1;
    return true;
}

/* Waits name ops that come first in the list, so the stream that is least far stands at a message.
 */
static int report_stuck(const struct walking *w, struct s4d_error *err)
{
    for (int stage = 0; stage < w->stages; stage++)
        for (int stream = 0; stream < S4D_STREAMS; stream++) {
            int iteration, first = head_of(w, stage, stream, &iteration);
            if (first < 0 || !w->posted[stage][stream])
                continue;
            const struct s4d_program *p = program_of(w, stage);
            int i = unmatched(w, stage, first, s4d_batch_last(p, first));
            int peer = stage + p->ops[i].c.message.peer;
            int other = head_of(w, peer, stream, &iteration);
            const struct s4d_op *x = other < 0 ? NULL : &program_of(w, peer)->ops[other];
            s4d_check_fail(p, i, err,
                           "deadlock: stage %d waits for stage %d, which is at %s %s (op %d)",
                           stage, peer, x ? s4d_op_kinds[x->kind].name : "no op",
                           x && x->label.name ? x->label.name : "", other);
            return s4d_hint(err, "messages that need each other belong in one batch");
        }
    s4d_bug(__FILE__, __LINE__, "pipe", "stages stand still and none waits for another");
}

static void walk_open(struct walking *w)
{
    size_t n = (size_t)w->stages;
    w->done = s4d_calloc(n, sizeof *w->done);
    w->posted = s4d_calloc(n, sizeof *w->posted);
    w->begun = s4d_calloc(2 * S4D_STREAMS * n * n, sizeof *w->begun);
    for (int s = 0; s < S4D_STREAMS; s++) {
        int length = 0;
        w->base[s] = s4d_malloc(n * sizeof *w->base[s]);
        for (int stage = 0; stage < w->stages; stage++) {
            w->base[s][stage] = length;
            length += program_of(w, stage)->stream_length[s];
        }
        w->at[s] = s4d_malloc((size_t)length * sizeof *w->at[s] + 1);
    }
    for (int stage = 0; stage < w->stages; stage++)
        for (int i = 0; i < program_of(w, stage)->n_ops; i++) {
            const struct s4d_op *x = &program_of(w, stage)->ops[i];
            w->at[x->stream][w->base[x->stream][stage] + x->position] = i;
        }
}

static void walk_close(struct walking *w)
{
    for (int s = 0; s < S4D_STREAMS; s++) {
        free(w->at[s]);
        free(w->base[s]);
    }
    free(w->done);
    free(w->posted);
    free(w->begun);
}

static int check_walk(const struct s4d_program *first, struct s4d_error *err)
{
    struct walking w = {.first = first, .stages = first->grid.size[S4D_PIPE]};
    int rc = 0;
    walk_open(&w);
    for (bool moved = true; moved;) {
        moved = false;
        for (int stage = 0; stage < w.stages; stage++)
            for (int s = 0; s < S4D_STREAMS; s++)
                while (step(&w, stage, s))
                    moved = true;
    }
    for (int stage = 0; stage < w.stages && rc == 0; stage++)
        for (int s = 0, iteration; s < S4D_STREAMS && rc == 0; s++)
            if (head_of(&w, stage, s, &iteration) >= 0)
                rc = report_stuck(&w, err);
    walk_close(&w);
    return rc;
}

int s4d_check_stages(const struct s4d_program *program, struct s4d_error *err)
{
    return check_grids(program, err) || check_channels(program, err) || check_pairs(program, err) ||
                   check_walk(program, err)
               ? -1
               : 0;
}
