/* SPDX-License-Identifier: Apache-2.0 */
/* Where the weight gathers go in the list (OAG, 2502.08145 sec. V-D).
 *
 * A gather is issued where its weight is used (none: computing stands still meanwhile), or where
 * the weight before it is used, so that it runs beside that computing: within a layer only, or
 * across layers. One gather ahead, which also bounds the memory of gathered weights: a gather
 * starts once the compute op before its place in the list has completed (an order wait). */
#include "schedule/builder.h"

#include <stdlib.h>

static bool same_pass(const struct s4d_label *a, const struct s4d_label *b)
{
    bool forward_a = a->phase == S4D_PHASE_FORWARD, forward_b = b->phase == S4D_PHASE_FORWARD;
    return a->layer == b->layer && a->micro_batch == b->micro_batch && forward_a == forward_b;
}

/* The list index before which the gather of use i is issued. */
static int place_of(const struct s4d_builder *b, int i)
{
    const struct s4d_weight_use *use = &b->uses[i];
    bool forward = use->label.phase == S4D_PHASE_FORWARD;
    enum s4d_prefetch mode =
        forward ? b->options->overlap.oag_forward : b->options->overlap.oag_backward;
    if (mode == S4D_PREFETCH_NONE || i == 0)
        return use->at;
    if (mode == S4D_PREFETCH_WITHIN_LAYER && !same_pass(&use->label, &b->uses[i - 1].label))
        return use->at;
    return b->uses[i - 1].at;
}

static void append(struct s4d_program *p, struct s4d_op op)
{
    s4d_push(p->ops, p->n_ops, p->cap_ops, op);
}

static void emit_gather(struct s4d_builder *b, const struct s4d_weight_use *use, int last_compute)
{
    b->label = use->label;
    b->label.name = b->p->params[use->param].name;
    s4d_order_after(b, last_compute);
    s4d_all_gather(b, S4D_STREAM_Z_GATHER, b->p->params[use->param].working, use->block);
}

/* Rewrites the list with the gathers in it; edges named ops of the old list. */
void s4d_place_gathers(struct s4d_builder *b)
{
    struct s4d_program *p = b->p;
    struct s4d_op *old = p->ops;
    int n = p->n_ops, n_edges = b->n_edges, last_compute = -1, next = 0;
    int *moved = s4d_malloc((size_t)(n + 1) * sizeof *moved);
    p->ops = NULL;
    p->n_ops = p->cap_ops = 0;
    for (int i = 0; i < n; i++) {
        while (next < b->n_uses && place_of(b, next) <= i)
            emit_gather(b, &b->uses[next++], last_compute);
        moved[i] = p->n_ops;
        if (old[i].stream == S4D_STREAM_COMPUTE)
            last_compute = p->n_ops;
        append(p, old[i]);
    }
    for (int i = 0; i < n_edges; i++) {
        b->edges[i].before = moved[b->edges[i].before];
        b->edges[i].after = moved[b->edges[i].after];
    }
    free(moved);
    free(old);
}
