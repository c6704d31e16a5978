/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor starts from, and lets go. */
#include <stdlib.h>

#include "sim/executor_state.h"
#include "support/memory.h"

/* Of the programs of all stages, or of the one. Returns the most sizes that any has. */
static int make_indices(struct executor *x, const struct s4d_kernels *kernels)
{
    int sizes = 0;
    x->n_indices = x->program->stages ? x->program->grid.size[S4D_PIPE] : 1;
    x->index = s4d_calloc((size_t)x->n_indices, sizeof *x->index);
    for (int i = 0; i < x->n_indices; i++) {
        x->index[i] = s4d_program_index_make(s4d_stage_program(x->program, i), kernels,
                                             &x->system->cluster->rates);
        sizes = x->index[i].n_sizes > sizes ? x->index[i].n_sizes : sizes;
    }
    return sizes;
}

static void set_up_rank(struct executor *x, int rank)
{
    struct rank *r = &x->ranks[rank];
    int c[S4D_AXES] = {0};
    if (x->program->stages)
        s4d_grid_coordinates(&x->program->grid, x->system->ranks[rank].representative, c);
    r->program = s4d_stage_program(x->program, c[S4D_PIPE]);
    r->index = &x->index[c[S4D_PIPE]];
    s4d_account_init(&r->account);
    for (int k = 0; k < ITERATIONS; k++)
        r->ends_left[k] = r->index->n_ends;
    for (int s = 0; s < S4D_STREAMS; s++)
        r->first_post[s] = -1;
}

void s4d_executor_set_up(struct executor *x, const struct s4d_kernels *kernels)
{
    const struct s4d_system *s = x->system;
    int sizes = make_indices(x, kernels);
    x->free_message = -1;
    x->ranks = s4d_calloc((size_t)s->n_ranks, sizeof *x->ranks);
    x->groups = s4d_calloc((size_t)s->n_groups, sizeof *x->groups);
    for (int i = 0; i < s->n_ranks; i++)
        set_up_rank(x, i);
    for (int k = 0; k < ITERATIONS; k++)
        x->ranks_left[k] = s->n_ranks;
    for (int i = 0; i < s->n_groups; i++) {
        x->groups[i].across_nodes = s->groups[i].by_algorithm[0].shape.nodes > 1;
        x->groups[i].prices = s4d_calloc((size_t)sizes, sizeof *x->groups[i].prices);
    }
}

void s4d_executor_tear_down(struct executor *x)
{
    s4d_engine_destroy(x->engine);
    for (int i = 0; i < x->system->n_groups; i++)
        free(x->groups[i].prices);
    for (int i = 0; i < x->n_indices; i++)
        s4d_program_index_free(&x->index[i]);
    free(x->index);
    free(x->groups);
    free(x->ranks);
    free(x->messages);
    free(x->queue);
    free(x->dirty);
}
