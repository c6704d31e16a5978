/* SPDX-License-Identifier: Apache-2.0 */
/* The unfolded system. It has some ten thousand groups and a few hundred thousand crossings of
 * flows and links at 4,096 ranks: a few large arrays, nothing quadratic. */
#include "sim/full.h"

#include <stdlib.h>

#include "sim/full_building.h"
#include "support/memory.h"

void s4d_full_add_flow(struct building *b, struct s4d_full_flow flow, const struct s4d_path *path)
{
    for (int i = 0; i < path->n; i++)
        s4d_push(b->crossings, b->n_crossings, b->cap_crossings,
                 (struct s4d_crossing){b->f->n_flows, path->link[i], path->weight[i]});
    s4d_push(b->f->flows, b->f->n_flows, b->cap_flows, flow);
}

static void find_stages(struct s4d_full *f, const struct s4d_program *p)
{
    f->stage = s4d_calloc((size_t)f->n_ranks, sizeof *f->stage);
    for (int rank = 0; rank < f->n_ranks && p->stages; rank++) {
        int c[S4D_AXES];
        s4d_grid_coordinates(&p->grid, rank, c);
        f->stage[rank] = c[S4D_PIPE];
    }
}

int s4d_full_create(struct s4d_full *f, const struct s4d_cluster *c, const struct s4d_program *p,
                    unsigned allowed, bool fold, struct s4d_error *err)
{
    *f = (struct s4d_full){.n_ranks = s4d_grid_ranks(&p->grid)};
    if (f->n_ranks > c->n_devices)
        return s4d_fail(err, S4D_EXIT_DATA, c->machine->name,
                        "the grid has %d ranks, the cluster %d devices", f->n_ranks, c->n_devices);
    struct building b = {.f = f, .c = c, .p = p, .allowed = allowed};
    find_stages(f, p);
    s4d_feeders_watch(c, fold);
    int rc = s4d_full_groups(&b, err) || s4d_full_messages(&b, err) ? -1 : 0;
    if (rc == 0) {
        s4d_full_links(&b, fold);
        s4d_full_graph(&b);
    }
    s4d_feeders_watch(c, false);
    free(b.group_of);
    free(b.crossings);
    return rc;
}

void s4d_full_free(struct s4d_full *f)
{
    free(f->groups);
    free(f->flows);
    free(f->messages);
    free(f->stage);
    free(f->shapes);
    free(f->links);
    free(f->spare_start);
    free(f->spare);
    free(f->start);
    free(f->to);
    free(f->weight);
    *f = (struct s4d_full){0};
}
