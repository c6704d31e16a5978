/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schedule/build.h"
#include "schedule/plan.h"
#include "sim/tune/estimate.h"
#include "sim/tune/footprint.h"
#include "support/progress.h"
#include "support/units.h" /* for: s4d_format_bytes */

struct s4d_options s4d_choice_options(const struct s4d_space *s, const struct s4d_choice *c)
{
    struct s4d_options o = s->options;
    o.micro_batch = c->micro_batch;
    o.recompute = c->recompute;
    o.cached_layers = c->cached_layers;
    return o;
}

/* --- one part x, y -------------------------------------------------------------------------- */

enum { RECOMPUTES = 3 };

/* The passes of one micro-batch and choice of recompute, as far as z and data do not matter. */
struct common {
    enum s4d_recompute recompute;
    int micro_batch;
    struct s4d_batch_passes passes;
};

struct ranker {
    const struct s4d_space *s;
    struct s4d_ranking *r;
    struct s4d_estimator estimator;
    struct s4d_footprints *footprints;
    double room_bytes; /* of the device, less the reserve */
    /* Of the part at hand: made when first needed. */
    bool made[RECOMPUTES];
    struct s4d_counts counts[RECOMPUTES];
    struct s4d_footprint_rows *rows[RECOMPUTES];
    struct common *common;
    int n_common, cap_common;
};

static void make_part(struct ranker *k, const struct s4d_grid *grid, const struct s4d_options *o)
{
    int i = (int)o->recompute;
    struct s4d_error err = {0};
    if (k->made[i])
        return;
    S4D_ASSERT(s4d_counts_create(&k->counts[i], k->estimator.model, grid, o, &err) == 0, "%s: %s",
               err.where, err.text);
    k->rows[i] = s4d_footprint_rows_create(k->footprints, &k->counts[i]);
    k->made[i] = true;
}

static void forget_part(struct ranker *k)
{
    for (int i = 0; i < RECOMPUTES; i++)
        if (k->made[i]) {
            s4d_footprint_rows_free(k->rows[i]);
            s4d_counts_free(&k->counts[i]);
            k->made[i] = false;
        }
    k->n_common = 0;
}

static struct s4d_batch_passes passes_of(struct ranker *k, const struct s4d_grid *grid,
                                         const struct s4d_options *o)
{
    const struct s4d_counts *counts = &k->counts[o->recompute];
    int i = 0;
    while (i < k->n_common &&
           (k->common[i].micro_batch != o->micro_batch || k->common[i].recompute != o->recompute))
        i++;
    if (i == k->n_common) {
        struct common c = {.recompute = o->recompute, .micro_batch = o->micro_batch};
        s4d_passes_common(&c.passes, &k->estimator, counts, grid, o);
        s4d_push(k->common, k->n_common, k->cap_common, c);
    }
    struct s4d_batch_passes passes = k->common[i].passes;
    s4d_passes_complete(&passes, &k->estimator, counts, grid, o);
    return passes;
}

/* Of a short model the plan itself; micro-batches after the first few use the same buffers. */
static double planned_bytes(const struct ranker *k, const struct s4d_grid *grid,
                            const struct s4d_options *options)
{
    enum { PLANNED = 4 };
    struct s4d_options o = *options;
    struct s4d_program p;
    struct s4d_error err = {0};
    int64_t few = (int64_t)PLANNED * o.micro_batch * grid->size[S4D_Z] * grid->size[S4D_DATA];
    int more = 0;
    if (o.global_batch > few) {
        more = o.global_batch / grid->size[S4D_Z] / grid->size[S4D_DATA];
        o.global_batch = (int)few;
    }
    S4D_ASSERT(s4d_build(&p, k->estimator.model, grid, &o, &err) == 0, "%s: %s", err.where,
               err.text);
    s4d_plan(&p);
    double bytes = (double)p.arena_bytes[S4D_DEVICE];
    for (int i = 0; i < p.n_storages && more; i++) /* the iteration's tokens grow with it */
        if (p.storages[i].role == S4D_ROLE_INPUT && p.storages[i].place == S4D_DEVICE)
            bytes += (double)p.storages[i].bytes / (PLANNED * o.micro_batch) * more;
    s4d_program_free(&p);
    return bytes;
}

static double memory_bytes(struct ranker *k, const struct s4d_grid *grid,
                           const struct s4d_options *o)
{
    return k->estimator.model->num_layers < S4D_FOOTPRINT_LAYERS
               ? planned_bytes(k, grid, o)
               : s4d_footprint_bytes(k->rows[o->recompute], grid, o);
}

/* --- one grid ------------------------------------------------------------------------------- */

/* Adds it where it fits. */
static bool consider(struct ranker *k, const struct s4d_grid *grid, const struct s4d_options *o,
                     const struct s4d_batch_passes *passes)
{
    struct s4d_choice c = {.grid = *grid,
                           .micro_batch = o->micro_batch,
                           .cached_layers = o->cached_layers,
                           .recompute = o->recompute};
    double reserve = k->s->machine->device.memory_reserve_bytes.value;
    k->r->configurations++;
    c.memory_bytes = memory_bytes(k, grid, o) + reserve;
    if (c.memory_bytes > k->room_bytes + reserve) {
        if (k->r->nearest.micro_batch == 0 || c.memory_bytes < k->r->nearest.memory_bytes)
            k->r->nearest = c;
        return false;
    }
    c.estimate_s = s4d_estimate_make(passes, &k->estimator, grid, o).total_s;
    s4d_push(k->r->v, k->r->n, k->r->cap, c);
    return true;
}

/* The amounts of cached layers that are tried: ascending, each once. */
static int cache_levels(const struct ranker *k, const struct s4d_grid *grid, int levels[5])
{
    int layers = k->estimator.model->num_layers, n = 0;
    if (!k->s->vary_cache) {
        levels[0] = k->s->options.cached_layers;
        return 1;
    }
    for (int quarter = 0; quarter <= (grid->size[S4D_Z] > 1 ? 4 : 0); quarter++) {
        int level = layers * quarter / 4;
        if (n == 0 || level > levels[n - 1])
            levels[n++] = level;
    }
    return n;
}

/* All amounts of cached layers for one micro-batch and choice of recompute. */
static bool consider_caches(struct ranker *k, const struct s4d_grid *grid, struct s4d_options *o)
{
    int levels[5], n = cache_levels(k, grid, levels);
    bool fits = false;
    make_part(k, grid, o);
    struct s4d_batch_passes passes = passes_of(k, grid, o);
    for (int i = 0; i < n; i++) {
        o->cached_layers = levels[i];
        fits |= consider(k, grid, o, &passes);
    }
    return fits;
}

static void consider_grid(struct ranker *k, const struct s4d_grid *grid)
{
    const struct s4d_space *s = k->s;
    struct s4d_options o = s->options;
    int local = o.global_batch / (grid->size[S4D_Z] * grid->size[S4D_DATA]);
    int most = s4d_most_micro_batches(k->estimator.model);
    int largest = s4d_largest_micro_batch(k->estimator.model);
    for (int b = s->options.micro_batch ? s->options.micro_batch : local; b >= 1; b--) {
        bool fits = false;
        if (local % b || local / b > most || b > largest)
            continue;
        o.micro_batch = b;
        for (int recompute = 0; recompute < RECOMPUTES; recompute++)
            if (s->vary_recompute || recompute == (int)s->options.recompute) {
                o.recompute = (enum s4d_recompute)recompute;
                fits |= consider_caches(k, grid, &o);
            }
        if (s->options.micro_batch || (s->largest_micro_batch && fits))
            break;
    }
}

/* --- all grids ------------------------------------------------------------------------------ */

enum { MOST_DIVISORS = 1600 }; /* of an int: those of 2095133040 */

/* Ascending; returns how many. */
static int divisors_of(int n, int list[MOST_DIVISORS])
{
    int small = 0;
    for (int d = 1; d <= n / d; d++)
        if (n % d == 0)
            list[small++] = d;
    int count = small;
    for (int i = small - 1; i >= 0; i--)
        if (list[i] != n / list[i])
            list[count++] = n / list[i];
    return count;
}

static struct s4d_grid grid_of(const struct s4d_space *s, int x, int y, int z)
{
    struct s4d_grid g = s4d_grid_make(x, y, z, s->gpus / x / y / z);
    memcpy(g.order, s->order.order, sizeof g.order);
    return g;
}

static void consider_part(struct ranker *k, int x, int y, const int *divisor, int n)
{
    int rest = k->s->gpus / x / y;
    for (int i = 0; i < n && divisor[i] <= rest; i++) {
        if (rest % divisor[i])
            continue;
        struct s4d_grid g = grid_of(k->s, x, y, divisor[i]);
        if (!k->s->strategy->allows(&g))
            continue;
        k->r->grids++;
        if (s4d_divides(k->estimator.model, &g, &k->s->options, NULL))
            continue;
        k->r->divide++;
        consider_grid(k, &g);
    }
    forget_part(k);
}

static int by_sizes(const struct s4d_choice *a, const struct s4d_choice *b)
{
    const int fields[][2] = {
        {a->grid.size[S4D_X], b->grid.size[S4D_X]}, {a->grid.size[S4D_Y], b->grid.size[S4D_Y]},
        {a->grid.size[S4D_Z], b->grid.size[S4D_Z]}, {a->micro_batch, b->micro_batch},
        {(int)a->recompute, (int)b->recompute},     {a->cached_layers, b->cached_layers},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i][0] != fields[i][1])
            return fields[i][0] < fields[i][1] ? -1 : 1;
    return 0;
}

static int by_estimate(const void *x, const void *y)
{
    const struct s4d_choice *a = x, *b = y;
    return a->estimate_s < b->estimate_s ? -1 : a->estimate_s > b->estimate_s ? 1 : by_sizes(a, b);
}

/* --- nothing found -------------------------------------------------------------------------- */

static bool divides_somehow(const struct s4d_space *space, int gpus)
{
    struct s4d_space s = *space;
    s.gpus = gpus;
    int x[MOST_DIVISORS], y[MOST_DIVISORS], z[MOST_DIVISORS], n = divisors_of(gpus, x);
    for (int i = 0; i < n; i++)
        for (int j = 0, m = divisors_of(gpus / x[i], y); j < m; j++)
            for (int k = 0, l = divisors_of(gpus / x[i] / y[j], z); k < l; k++) {
                struct s4d_grid g = grid_of(&s, x[i], y[j], z[k]);
                if (s.strategy->allows(&g) &&
                    s4d_divides(&s.workload->model, &g, &s.options, NULL) == 0)
                    return true;
            }
    return false;
}

/* The nearest number of GPUs, downwards or upwards, that has a grid; 0: none near. */
static int nearest_gpus(const struct s4d_space *s, int step)
{
    enum { FAR = 1024 };
    int64_t most = (int64_t)s->machine->fabric.nodes * s->machine->node.devices;
    for (int i = 1, n = s->gpus + step; i <= FAR && n >= 1 && n <= most; i++, n += step)
        if (divides_somehow(s, n))
            return n;
    return 0;
}

static int nothing_divides(const struct s4d_space *s, struct s4d_error *err)
{
    const struct s4d_model *m = &s->workload->model;
    struct s4d_grid one = s4d_grid_make(1, 1, 1, 1);
    if (s4d_divides(m, &one, &s->options, err))
        return -1; /* what fits no grid at all says so itself */
    s4d_fail(err, S4D_EXIT_USAGE, "--gpus",
             "no %s grid of %d GPUs divides %s and a global batch of %d: x must divide its %d "
             "key-value heads (and widths), y its hidden_size of %d, z times data the batch",
             s->strategy == s4d_strategies ? "4D" : s->strategy->name, s->gpus, m->name,
             s->options.global_batch, m->num_key_value_heads, m->hidden_size);
    int below = nearest_gpus(s, -1), above = nearest_gpus(s, 1);
    if (below && above)
        return s4d_hint(err, "nearest numbers of GPUs that have a grid: %d, %d", below, above);
    if (below || above)
        return s4d_hint(err, "nearest number of GPUs that has a grid: %d", below ? below : above);
    return s4d_hint(err, "no number of GPUs near it has a grid: change --global-batch");
}

static int nothing_fits(const struct s4d_space *s, const struct s4d_ranking *r,
                        struct s4d_error *err)
{
    const struct s4d_device *d = &s->machine->device;
    const struct s4d_choice *c = &r->nearest;
    char grid[64], text[3][32];
    if (r->configurations == 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--micro-batch",
                        "every grid has more than %d micro-batches, the most of %s on a rank",
                        s4d_most_micro_batches(&s->workload->model), s->workload->model.name);
    s4d_fail(err, S4D_EXIT_DATA, "memory",
             "%s fits no %s grid of %d GPUs: the nearest, %s with micro-batch %d and recompute %s, "
             "needs %s a device, %s more than the %s of %s",
             s->workload->model.name, s->strategy == s4d_strategies ? "4D" : s->strategy->name,
             s->gpus, s4d_grid_text(&c->grid, grid, sizeof grid), c->micro_batch,
             s4d_recompute_names[c->recompute],
             s4d_format_bytes(c->memory_bytes, text[0], sizeof text[0]),
             s4d_format_bytes(c->memory_bytes - d->memory_bytes.value, text[1], sizeof text[1]),
             s4d_format_bytes(d->memory_bytes.value, text[2], sizeof text[2]), d->name);
    return s4d_hint(err, "%d of %d grids divide the model and the batch: use more GPUs", r->divide,
                    r->grids);
}

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int s4d_space_rank(const struct s4d_space *s, struct s4d_ranking *r, struct s4d_error *err)
{
    double start_s = processor_s();
    *r = (struct s4d_ranking){.n = 0};
    struct ranker k = {.s = s, .r = r};
    struct s4d_rates rates;
    if (s4d_scenario_rates(&rates, s->machine, s->gpus, s->scenario, err))
        return -1;
    const struct s4d_device *d = &s->machine->device;
    k.room_bytes = d->memory_bytes.value - d->memory_reserve_bytes.value;
    k.estimator = (struct s4d_estimator){
        .machine = s->machine, .model = &s->workload->model, .rates = &rates};
    k.estimator.wires = s4d_wires_create(s->machine, s->gpus, err);
    if (!k.estimator.wires)
        return -1;
    k.footprints = s4d_footprints_create(&s->workload->model);
    int divisor[MOST_DIVISORS], n = divisors_of(s->gpus, divisor);
    for (int i = 0; i < n; i++) {
        s4d_progress("ranking", i, n);
        for (int j = 0; j < n; j++)
            if (s->gpus / divisor[i] % divisor[j] == 0)
                consider_part(&k, divisor[i], divisor[j], divisor, n);
    }
    s4d_progress_end();
    free(k.common);
    s4d_footprints_free(k.footprints);
    s4d_wires_free(k.estimator.wires);
    if (r->n > 1)
        qsort(r->v, (size_t)r->n, sizeof *r->v, by_estimate);
    r->ranking_s = processor_s() - start_s;
    return r->n > 0 ? 0 : r->divide == 0 ? nothing_divides(s, err) : nothing_fits(s, r, err);
}

void s4d_ranking_free(struct s4d_ranking *r)
{
    free(r->v);
    r->v = NULL;
    r->n = r->cap = 0;
}
