/* SPDX-License-Identifier: Apache-2.0 */
/* Folding: ranks, groups, flows and links that can be told apart neither by what they are (the
 * keys) nor by what they touch (the refinement). Then all members of a class do the same at the
 * same time:
 *
 * - a rank's ops depend on its stage's program, its device's speed, on when the collectives of its
 *   groups end, and its messages, which begin when its peer, one of one class, has come to them;
 * - a group's collective starts when its members have arrived, that is, when one of each class of
 *   members has, and ends when its flows have ended;
 * - max-min sharing lets all flows grow together until a link is full. Links of a class carry the
 *   same total multiplicity of every flow class, so they fill up together, and stop the same flow
 *   classes, since flows of a class cross the same set of link classes.
 *
 * So one link with the total multiplicities, one flow, one group and one rank of each class behave
 * as in the full system (design: equitable partition). Links that never limit a flow, whatever
 * runs, are left out before (sim/spare.h): otherwise a dragonfly group that a job fills by halves
 * would tell everything apart. */
#include <stdlib.h>
#include <string.h>

#include "sim/full.h"
#include "sim/refine.h"
#include "support/memory.h"

enum kind { RANK, GROUP, FLOW, LINK };

static uint64_t bits(double value)
{
    uint64_t b;
    memcpy(&b, &value, sizeof b);
    return b;
}

static uint64_t two(int high, int low)
{
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

/* A number for each distinct text; kinds are few. */
static int text_number(const char **seen, int *n, int cap, const char *text)
{
    for (int i = 0; i < *n; i++)
        if (seen[i] == text || strcmp(seen[i], text) == 0)
            return i;
    S4D_ASSERT(*n < cap, "more than %d kinds of links", cap);
    seen[*n] = text;
    return (*n)++;
}

/* A number for each distinct list of a group's shapes by algorithm; the latest is asked for most.
 */
static int shapes_number(const struct s4d_full *f, int group, int *seen, int *n)
{
    const int *shape = f->groups[group].shape;
    for (int i = *n - 1; i >= 0; i--)
        if (memcmp(f->groups[seen[i]].shape, shape, sizeof f->groups->shape) == 0)
            return i;
    seen[*n] = group;
    return (*n)++;
}

static void set_key(uint64_t *key, int node, enum kind kind, int number, uint64_t a, uint64_t b)
{
    uint64_t *k = key + (size_t)node * S4D_KEY_WORDS;
    k[0] = two((int)kind, number);
    k[1] = a;
    k[2] = b;
}

static void set_keys(const struct s4d_full *f, const struct s4d_cluster *c, uint64_t *key)
{
    const char *kinds[64];
    int n_kinds = 0;
    for (int i = 0; i < f->n_ranks; i++)
        set_key(key, i, RANK, f->stage[i], bits(c->device_speed[s4d_device_of_rank(c, i)]), 0);
    int *seen = s4d_malloc((size_t)f->n_groups * sizeof *seen + 1), n_seen = 0;
    for (int i = 0; i < f->n_groups; i++)
        set_key(key, s4d_full_group_node(f, i), GROUP, f->groups[i].set,
                (uint64_t)shapes_number(f, i, seen, &n_seen), 0);
    free(seen);
    for (int i = 0; i < f->n_flows; i++)
        set_key(key, s4d_full_flow_node(f, i), FLOW, f->flows[i].algorithm, bits(f->flows[i].share),
                (uint64_t)f->flows[i].phase);
    for (int i = 0; i < f->n_links; i++) {
        const struct s4d_link *link = &c->links[f->links[i]];
        set_key(key, s4d_full_link_node(f, i), LINK, text_number(kinds, &n_kinds, 64, link->kind),
                bits(link->capacity_Bps), 0);
    }
}

int s4d_fold(const struct s4d_full *f, const struct s4d_cluster *c, int *class_of,
             struct s4d_error *err)
{
    size_t n = (size_t)s4d_full_nodes(f);
    uint64_t *key = s4d_malloc(n * S4D_KEY_WORDS * sizeof *key);
    bool *totals = s4d_calloc(n, sizeof *totals);
    set_keys(f, c, key);
    for (int i = 0; i < f->n_links; i++)
        totals[s4d_full_link_node(f, i)] = true;
    struct s4d_graph graph = {(int)n, f->start, f->to, f->weight, totals, key};
    int n_classes = s4d_refine(&graph, class_of);
    if (s4d_equitable(&graph, class_of, n_classes, err))
        n_classes = -1;
    free(key);
    free(totals);
    return n_classes;
}
