/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/footprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/build.h"
#include "schedule/plan.h"
#include "sim/tune/liveness.h"

/* Programs that differ in no more than sizes have one outline, made of short ones.
 *
 * Buffers that a bounded number of layers share are all in use between the third layer from the
 * top and the second from the bottom. So five layers, none cached or all; or three that are cached
 * and four that are not, fewer where the program has fewer. With buckets a layer's shards are added
 * up while the next computes, which takes one more of each. An added layer comes below the top
 * three of all, or above the bottom of those that are cached. */
struct depths {
    int plain, cached, other, top, bottom;
};

static struct depths depths_of(const struct s4d_options *o)
{
    int more = o->gradient_reduce == S4D_REDUCE_BUCKETS;
    return (struct depths){
        .plain = 5 + more, .cached = 3 + more, .other = 4 + more, .top = 3, .bottom = 2 + more};
}

struct outline_key {
    int recompute;
    int cached, other;  /* layers of the short program */
    int batches;        /* one, two, or more */
    bool x, y, z, data; /* sizes above one */
};

struct entry {
    struct outline_key key;
    struct s4d_outline *outline;
};

struct s4d_footprints {
    const struct s4d_model *model;
    struct entry *entry;
    int n, cap;
};

struct s4d_footprints *s4d_footprints_create(const struct s4d_model *model)
{
    struct s4d_footprints *f = s4d_calloc(1, sizeof *f);
    f->model = model;
    return f;
}

void s4d_footprints_free(struct s4d_footprints *f)
{
    for (int i = 0; f && i < f->n; i++)
        s4d_outline_free(f->entry[i].outline);
    free(f ? f->entry : NULL);
    free(f);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static struct outline_key key_of(const struct s4d_footprints *f, const struct s4d_grid *g,
                                 const struct s4d_options *o)
{
    bool messages = o->gradient_type == o->precision && o->precision > S4D_F32;
    int cached = g->size[S4D_Z] == 1 ? 0 : o->cached_layers, other = f->model->num_layers - cached;
    int batches = o->global_batch / (o->micro_batch * g->size[S4D_Z] * g->size[S4D_DATA]);
    bool mixed = cached > 0 && other > 0;
    struct depths d = depths_of(o);
    return (struct outline_key){
        .recompute = (int)o->recompute,
        .cached = least(cached, mixed ? d.cached : d.plain),
        .other = least(other, mixed ? d.other : d.plain),
        .batches = least(batches, 3),
        .x = g->size[S4D_X] > 1,
        .y = g->size[S4D_Y] > 1,
        .z = g->size[S4D_Z] > 1,
        .data = messages && g->size[S4D_DATA] > 1,
    };
}

static bool same(const struct outline_key *a, const struct outline_key *b)
{
    return a->recompute == b->recompute && a->cached == b->cached && a->other == b->other &&
           a->x == b->x && a->y == b->y && a->z == b->z && a->data == b->data &&
           a->batches == b->batches;
}

static void build(struct s4d_program *p, const struct s4d_footprints *f,
                  const struct outline_key *key, const struct s4d_grid *grid,
                  const struct s4d_options *options, int layers, int cached)
{
    struct s4d_model m = *f->model;
    struct s4d_grid g = *grid;
    struct s4d_options o = *options;
    struct s4d_error err = {0};
    m.num_layers = layers;
    g.size[S4D_Z] = key->z ? 2 : 1;
    g.size[S4D_DATA] = key->data ? 2 : 1;
    o.micro_batch = 1;
    o.global_batch = key->batches * g.size[S4D_Z] * g.size[S4D_DATA];
    o.cached_layers = cached;
    S4D_ASSERT(s4d_build(p, &m, &g, &o, &err) == 0, "%s: %s", err.where, err.text);
}

static struct s4d_outline *make_outline(const struct s4d_footprints *f,
                                        const struct outline_key *key, const struct s4d_grid *grid,
                                        const struct s4d_options *options)
{
    struct s4d_program base, longer, more;
    struct depths d = depths_of(options);
    int layers = key->cached + key->other;
    bool mixed = key->cached > 0 && key->other > 0;
    /* Where those that are not cached are few they are as many as the program has: the others
     * grow. */
    bool grows = key->other == 0 || (mixed && key->other < d.other);
    int at = mixed && grows ? d.bottom : layers - d.top;
    bool both = key->cached == d.cached && key->other == d.other;
    build(&base, f, key, grid, options, layers, key->cached);
    build(&longer, f, key, grid, options, layers + 1, key->cached + grows);
    if (both)
        build(&more, f, key, grid, options, layers + 1, key->cached + 1);
    struct s4d_outline *outline =
        s4d_outline_make(&base, &longer, at, both ? &more : NULL, d.bottom);
    s4d_program_free(&base);
    s4d_program_free(&longer);
    if (both)
        s4d_program_free(&more);
    return outline;
}

static const struct s4d_outline *outline_of(struct s4d_footprints *f, const struct s4d_grid *grid,
                                            const struct s4d_options *options)
{
    struct outline_key key = key_of(f, grid, options);
    for (int i = 0; i < f->n; i++)
        if (same(&f->entry[i].key, &key))
            return f->entry[i].outline;
    struct entry entry = {.key = key, .outline = make_outline(f, &key, grid, options)};
    s4d_push(f->entry, f->n, f->cap, entry);
    return entry.outline;
}

/* --- one part x, y -------------------------------------------------------------------------- */

/* An outline with this part's sizes. Of each of its rows: bytes of activations with b = 1, and for
 * a sequence more; blocks and shards of each matrix; inputs and messages. All twice: for no cached
 * layer more than the outline's, and for each one more. */
enum { MATRICES = 12 };
struct depth {
    double one, each;
    double blocks[MATRICES], shards[MATRICES];
    double input, message[3];
};
struct sized {
    const struct s4d_outline *outline;
    struct depth *base, *slope;
    int n, cached; /* cached layers of base */
};

/* A storage's bytes with one and with two sequences. */
struct named {
    const char *name;
    double one, two;
};

struct s4d_footprint_rows {
    struct s4d_footprints *f;
    const struct s4d_counts *c;
    const struct s4d_param *matrix[MATRICES];
    int n_matrices;
    /* Persistent: for each sharded element, for each replicated one, and besides. */
    double sharded_bytes, replicated_bytes, fixed_bytes;
    struct named *named;
    int n_named, cap_named;
    struct sized *sized;
    int n, cap;
};

enum { ALIGN = S4D_PLAN_ALIGN };

static void count_persistent(struct s4d_footprint_rows *r)
{
    const struct s4d_program *p = &r->c->one;
    double sharded = (double)s4d_flat_elements(r->c, true, 1, p->grid.size[S4D_Z]),
           replicated = (double)s4d_flat_elements(r->c, false, 1, 1);
    for (int i = 0; i < p->n_storages; i++) {
        const struct s4d_storage *s = &p->storages[i];
        if (!s->persistent || s->place != S4D_DEVICE)
            continue;
        bool flat = s->role == S4D_ROLE_MASTER || s->role == S4D_ROLE_MOMENT ||
                    s->role == S4D_ROLE_GRADIENT || s->role == S4D_ROLE_PARAMETER;
        r->fixed_bytes += flat ? ALIGN : (double)s->bytes + ALIGN;
        if (flat && strstr(s->name, ".replicated"))
            r->replicated_bytes += (double)s->bytes / replicated;
        else if (flat)
            r->sharded_bytes += (double)s->bytes / sharded;
    }
}

void s4d_footprint_rows_free(struct s4d_footprint_rows *r)
{
    for (int i = 0; r && i < r->n; i++) {
        free(r->sized[i].base);
        free(r->sized[i].slope);
    }
    free(r ? r->named : NULL);
    free(r ? r->sized : NULL);
    free(r);
}

static int matrix_of(const struct s4d_footprint_rows *r, const char *name)
{
    for (int i = 0; i < r->n_matrices; i++)
        if (strcmp(s4d_without_layer(r->matrix[i]->name), name) == 0)
            return i;
    s4d_bug(__FILE__, __LINE__, name, "no such matrix");
}

static const struct named *named(const struct s4d_footprint_rows *r, const char *name)
{
    for (int i = 0; i < r->n_named; i++)
        if (strcmp(r->named[i].name, name) == 0)
            return &r->named[i];
    return NULL;
}

/* Each name once, with the greatest size of the storages that have it. */
static void collect_names(struct s4d_footprint_rows *r)
{
    const struct s4d_counts *c = r->c;
    for (int i = 0; i < c->one.n_storages; i++) {
        struct named n = {c->one.storages[i].name, (double)c->one.storages[i].bytes,
                          (double)c->two.storages[i].bytes};
        struct named *have = (struct named *)named(r, n.name);
        if (!have)
            s4d_push(r->named, r->n_named, r->cap_named, n);
        else if (n.two > have->two)
            *have = n;
    }
}

struct s4d_footprint_rows *s4d_footprint_rows_create(struct s4d_footprints *f,
                                                     const struct s4d_counts *c)
{
    struct s4d_footprint_rows *r = s4d_calloc(1, sizeof *r);
    r->f = f;
    r->c = c;
    for (int i = 0; i < c->one.n_params; i++)
        if (c->one.params[i].sharded_z) {
            S4D_ASSERT(r->n_matrices < MATRICES, "more than %d matrices in a layer", MATRICES);
            r->matrix[r->n_matrices++] = &c->one.params[i];
        }
    count_persistent(r);
    collect_names(r);
    return r;
}

/* What a kind of storage adds to a depth: bytes with b = 1 and for a sequence more, or a matrix. */
struct kind_size {
    enum s4d_kind what;
    int matrix;
    double one, each;
};

static struct kind_size size_of_kind(const struct s4d_footprint_rows *r,
                                     const struct s4d_storage_kind *kind)
{
    struct kind_size size = {.what = kind->what};
    const struct named *n = NULL;
    if (kind->what == S4D_KIND_BLOCK || kind->what == S4D_KIND_SHARD)
        size.matrix = matrix_of(r, kind->name);
    else if (kind->what == S4D_KIND_ACTIVATION || kind->what == S4D_KIND_INPUT)
        n = named(r, kind->name);
    size.one = n ? n->one + ALIGN : 0;
    size.each = n ? n->two - n->one : 0;
    S4D_ASSERT(n || kind->what != S4D_KIND_ACTIVATION, "no storage %s", kind->name);
    return size;
}

static void add_depth(struct depth *d, const struct kind_size *kind, double count)
{
    switch (kind->what) {
    case S4D_KIND_BLOCK:
        d->blocks[kind->matrix] += count;
        return;
    case S4D_KIND_SHARD:
        d->shards[kind->matrix] += count;
        return;
    case S4D_KIND_INPUT:
        d->input += count * kind->each / 2; /* of the two micro-batches of the counts */
        return;
    case S4D_KIND_MESSAGE:
    case S4D_KIND_MESSAGE_LAYER:
    case S4D_KIND_MESSAGE_OUTSIDE:
        d->message[kind->what - S4D_KIND_MESSAGE] += count;
        return;
    case S4D_KIND_ACTIVATION:
        d->one += count * kind->one;
        d->each += count * kind->each;
        return;
    }
}

/* The outline's rows for a model of so many layers: as many cached as in the outline, and for one
 * more that is cached. */
static struct sized make_sized(const struct s4d_footprint_rows *r, const struct s4d_outline *o,
                               int cached)
{
    struct sized s = {.outline = o, .n = o->n_rows, .cached = cached};
    double more = r->f->model->num_layers - o->layers;
    s.base = s4d_calloc((size_t)o->n_rows, sizeof *s.base);
    s.slope = s4d_calloc((size_t)o->n_rows, sizeof *s.slope);
    for (int k = 0; k < o->n_kinds; k++) {
        struct kind_size size = size_of_kind(r, &o->kind[k]);
        for (int i = 0; i < o->n_rows; i++) {
            const struct s4d_outline_row *row = &o->row[i];
            add_depth(&s.base[i], &size, row->count[k] + more * row->layer[k]);
            add_depth(&s.slope[i], &size, row->cached[k]);
        }
    }
    return s;
}

static const struct sized *sized_of(struct s4d_footprint_rows *r, const struct s4d_grid *grid,
                                    const struct s4d_options *options)
{
    const struct s4d_outline *o = outline_of(r->f, grid, options);
    for (int i = 0; i < r->n; i++)
        if (r->sized[i].outline == o)
            return &r->sized[i];
    struct sized s = make_sized(r, o, depths_of(options).cached);
    s4d_push(r->sized, r->n, r->cap, s);
    return &r->sized[r->n - 1];
}

/* --- one configuration ---------------------------------------------------------------------- */

static double persistent_bytes(const struct s4d_footprint_rows *r, int z)
{
    const struct s4d_counts *c = r->c;
    int layers = r->f->model->num_layers;
    return r->fixed_bytes + r->sharded_bytes * (double)s4d_flat_elements(c, true, layers, z) +
           r->replicated_bytes * (double)s4d_flat_elements(c, false, layers, z);
}

struct sizes {
    double block[MATRICES], shard[MATRICES], message[3], sequences;
    int b;
};

static double depth_bytes(const struct depth *d, const struct sizes *s, int matrices)
{
    double sum = d->one + d->each * (s->b - 1) + d->input * s->sequences;
    for (int i = 0; i < matrices; i++)
        sum += d->blocks[i] * s->block[i] + d->shards[i] * s->shard[i];
    for (int i = 0; i < 3; i++)
        sum += d->message[i] * s->message[i];
    return sum;
}

static struct sizes sizes_of(const struct s4d_footprint_rows *r, const struct s4d_grid *grid,
                             const struct s4d_options *o)
{
    int z = grid->size[S4D_Z], layers = r->f->model->num_layers;
    double element = s4d_type_bytes[o->precision], wire = s4d_type_bytes[o->gradient_type];
    struct sizes s = {.b = o->micro_batch,
                      .sequences = (double)o->global_batch / z / grid->size[S4D_DATA]};
    for (int i = 0; i < r->n_matrices; i++) {
        double elements = (double)s4d_shard_elements(r->c, r->matrix[i], z);
        s.shard[i] = elements * element;
        s.block[i] = s.shard[i] * z;
        bool inside = r->matrix[i]->layer >= 0;
        s.message[0] += (inside ? layers : 1) * elements * wire;
        s.message[inside ? 1 : 2] += elements * wire;
    }
    return s;
}

double s4d_footprint_bytes(struct s4d_footprint_rows *r, const struct s4d_grid *grid,
                           const struct s4d_options *options)
{
    const struct sized *sized = sized_of(r, grid, options);
    struct sizes s = sizes_of(r, grid, options);
    double most = 0, more = options->cached_layers - sized->cached;
    bool some = grid->size[S4D_Z] > 1 && options->cached_layers > 0 &&
                options->cached_layers < r->f->model->num_layers;
    for (int i = 0; i < sized->n; i++) {
        double bytes = depth_bytes(&sized->base[i], &s, r->n_matrices);
        if (some)
            bytes += more * depth_bytes(&sized->slope[i], &s, r->n_matrices);
        most = bytes > most ? bytes : most;
    }
    /* The norm's parts, two numbers from every rank of {x,y,z}, are no kind of their own. */
    double parts = 16.0 * grid->size[S4D_X] * grid->size[S4D_Y] * grid->size[S4D_Z] + ALIGN;
    return persistent_bytes(r, grid->size[S4D_Z]) + most * (1 + S4D_PACKING) + parts;
}
