/* SPDX-License-Identifier: Apache-2.0 */
/* Whether model, grid and options fit together, said before anything runs, with the nearest values
 * that fit. */
#include <stdio.h>

#include "schedule/build.h"
#include "schedule/layer.h"

/* Puts v into the two largest up to `found`, or the two smallest beyond; each value once. */
static void keep_nearest(int64_t v, int64_t found, int64_t below[2], int64_t above[2])
{
    int64_t *near = v <= found ? below : above;
    bool nearer = v <= found ? v > near[0] : v < near[0];
    if (nearer) {
        near[1] = near[0];
        near[0] = v;
    } else if (v != near[0] && (v <= found ? v > near[1] : v < near[1])) {
        near[1] = v;
    }
}

/* "1, 2, 4": the divisors of n nearest to found, at most four. */
static void nearest_divisors(int64_t n, int64_t found, char *text, size_t size)
{
    int64_t below[2] = {0, 0}, above[2] = {INT64_MAX, INT64_MAX}; /* the nearest first */
    for (int64_t d = 1; d <= n / d; d++)                          /* d and n / d: n may be 2^30 */
        for (int pair = 0; pair < 2 && n % d == 0; pair++)
            keep_nearest(pair ? n / d : d, found, below, above);
    const int64_t near[] = {below[1], below[0], above[0], above[1]};
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < 4; i++)
        if (near[i] != 0 && near[i] != INT64_MAX)
            used += (size_t)snprintf(text + used, size - used, "%s%lld", used ? ", " : "",
                                     (long long)near[i]);
}

int s4d_axis_divides(const struct s4d_grid *g, enum s4d_axis axis, int64_t n, const char *what,
                     const struct s4d_model *m, struct s4d_error *err)
{
    char near[128];
    int found = g->size[axis];
    if (n % found == 0)
        return 0;
    s4d_fail(err, S4D_EXIT_USAGE, "--grid", "%s must divide %s of %s (%lld), found %d",
             s4d_axis_names[axis], what, m->name, (long long)n, found);
    nearest_divisors(n, found, near, sizeof near);
    return s4d_hint(err, "nearest values of %s that fit: %s", s4d_axis_names[axis], near);
}

static int batch_divides(const struct s4d_grid *g, const struct s4d_options *o,
                         struct s4d_error *err)
{
    char near[128];
    int replicas = g->size[S4D_Z] * g->size[S4D_DATA];
    if (o->global_batch < 1)
        return s4d_fail(err, S4D_EXIT_USAGE, "--global-batch",
                        "expected at least 1 sequence, found %d", o->global_batch);
    if (o->global_batch % replicas) {
        s4d_fail(err, S4D_EXIT_USAGE, "--global-batch",
                 "z times data (%d) must divide it, found %d", replicas, o->global_batch);
        int below = o->global_batch / replicas * replicas;
        return below ? s4d_hint(err, "nearest values that fit: %d, %d", below, below + replicas)
                     : s4d_hint(err, "nearest value that fits: %d", replicas);
    }
    int local = o->global_batch / replicas;
    if (o->micro_batch >= 0 && (o->micro_batch == 0 || local % o->micro_batch == 0))
        return 0;
    s4d_fail(err, S4D_EXIT_USAGE, "--micro-batch",
             "must divide the %d sequences of a rank, found %d", local, o->micro_batch);
    nearest_divisors(local, o->micro_batch, near, sizeof near);
    return s4d_hint(err, "nearest values that fit: %s", near);
}

static int slots_divide(const struct s4d_model *m, const struct s4d_grid *g, struct s4d_error *err)
{
    const char *const names[] = {m->embedding, m->positions, m->norm,
                                 m->attention, m->mlp,       m->head};
    for (int slot = 0; slot < S4D_SLOT_LINEAR; slot++) {
        const struct s4d_layer_kind *kind = s4d_layer_kind_find(names[slot]);
        if (!kind || kind->slot != (enum s4d_slot)slot)
            return s4d_fail(err, S4D_EXIT_DATA, m->name, "unknown %s kind '%s'",
                            s4d_slot_names[slot], names[slot]);
        if (kind->divides && kind->divides(m, g, err))
            return -1;
    }
    return 0;
}

int s4d_divides(const struct s4d_model *m, const struct s4d_grid *g, const struct s4d_options *o,
                struct s4d_error *err)
{
    for (int axis = 0; axis < S4D_AXES; axis++)
        if (g->size[axis] < 1)
            return s4d_fail(err, S4D_EXIT_USAGE, "--grid", "%s must be at least 1, found %d",
                            s4d_axis_names[axis], g->size[axis]);
    if (g->size[S4D_PIPE] != 1)
        return s4d_fail(err, S4D_EXIT_USAGE, "--pipeline", "only 1 stage is supported, found %d",
                        g->size[S4D_PIPE]);
    if (s4d_axis_divides(g, S4D_Y, m->hidden_size, "hidden_size", m, err) ||
        slots_divide(m, g, err))
        return -1;
    if (o->cached_layers < 0 || o->cached_layers > m->num_layers)
        return s4d_fail(err, S4D_EXIT_USAGE, "--cache-layers", "expected 0 to %d layers, found %d",
                        m->num_layers, o->cached_layers);
    return batch_divides(g, o, err);
}
