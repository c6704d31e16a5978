/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/liveness.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/order.h" /* for: struct s4d_clocks */

const char *s4d_without_layer(const char *name)
{
    static const char prefix[] = "layers.";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return name;
    const char *p = name + sizeof prefix - 1;
    while (isdigit((unsigned char)*p))
        p++;
    return *p == '.' ? p + 1 : name;
}

/* --- kinds ---------------------------------------------------------------------------------- */

static const struct {
    const char *suffix;
    enum s4d_kind what;
} suffixes[] = {
    {".gathered", S4D_KIND_BLOCK},     {".d_weight", S4D_KIND_BLOCK},
    {".d_weight.odd", S4D_KIND_BLOCK}, {".d_weight.even", S4D_KIND_BLOCK},
    {".d_shard", S4D_KIND_SHARD},
};

/* The parameter that a storage is a block or a shard of: named after it, or after its layer's
 * label. NULL: none. */
static const char *parameter_of(const struct s4d_program *p, const char *storage, size_t n)
{
    for (int i = 0; i < p->n_params; i++) {
        const char *name = s4d_without_layer(p->params[i].name);
        static const char weight[] = ".weight";
        size_t length = strlen(name);
        if (!p->params[i].sharded_z || strncmp(name, storage, n) != 0)
            continue;
        if (length == n || (length == n + sizeof weight - 1 && strcmp(name + n, weight) == 0))
            return name;
    }
    return NULL;
}

static enum s4d_kind message_kind(const struct s4d_program *p, const struct s4d_storage *s)
{
    int64_t all = 0, layer = 0;
    for (int i = 0; i < p->n_params; i++) {
        const struct s4d_param *q = &p->params[i];
        all += q->sharded_z ? q->shard_elements : 0;
        layer += q->sharded_z && q->layer == 0 ? q->shard_elements : 0;
    }
    int64_t elements = s->bytes / s4d_type_bytes[p->options.gradient_type];
    return elements == all     ? S4D_KIND_MESSAGE
           : elements == layer ? S4D_KIND_MESSAGE_LAYER
                               : S4D_KIND_MESSAGE_OUTSIDE;
}

static struct s4d_storage_kind kind_of(const struct s4d_program *p, const struct s4d_storage *s)
{
    const char *name = s4d_without_layer(s->name);
    if (s->role == S4D_ROLE_INPUT)
        return (struct s4d_storage_kind){S4D_KIND_INPUT, s->name};
    if (s->role == S4D_ROLE_MESSAGE)
        return (struct s4d_storage_kind){message_kind(p, s), ""};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = strlen(name), m = strlen(suffixes[i].suffix);
        if (n <= m || strcmp(name + n - m, suffixes[i].suffix) != 0)
            continue;
        const char *parameter = parameter_of(p, name, n - m);
        if (parameter)
            return (struct s4d_storage_kind){suffixes[i].what, parameter};
    }
    return (struct s4d_storage_kind){S4D_KIND_ACTIVATION, s->name};
}

static int find_kind(struct s4d_outline *o, const struct s4d_storage_kind *kind)
{
    for (int i = 0; i < o->n_kinds; i++)
        if (o->kind[i].what == kind->what && strcmp(o->kind[i].name, kind->name) == 0)
            return i;
    struct s4d_storage_kind own = {kind->what, s4d_arena_printf(&o->memory, "%s", kind->name)};
    s4d_push(o->kind, o->n_kinds, o->cap_kinds, own);
    return o->n_kinds - 1;
}

/* --- one program's lives -------------------------------------------------------------------- */

enum { KINDS = 64 };

struct lives {
    const struct s4d_program *p;
    int *first, *last, *kind; /* by storage; kind -1: persistent, on the host, or never used */
    int *ordinal;             /* by op: its number among those of its phase, layer, micro-batch */
    int16_t (*live)[KINDS];   /* by op */
};

static bool is_counted(const struct s4d_storage *s)
{
    return s->place == S4D_DEVICE && !s->persistent && strcmp(s->name, "norm.gathered") != 0;
}

/* The op of the compute stream from which on that stream knows this storage's uses to have ended:
 * a reduce-scatter holds its input until something waits for it. n_ops: never in this list. */
static int released(const struct lives *l, const struct s4d_clocks *clocks, const int *position,
                    int storage)
{
    const struct s4d_program *p = l->p;
    for (int op = l->last[storage] + 1; op < p->n_ops; op++) {
        const int *clock = &clocks->clock[(size_t)op * S4D_STREAMS];
        bool after = p->ops[op].stream == S4D_STREAM_COMPUTE;
        for (int s = 0; s < S4D_STREAMS && after; s++)
            after = s == S4D_STREAM_COMPUTE || position[s] < 0 || clock[s] > position[s];
        if (after)
            return op;
    }
    return p->n_ops;
}

/* From the first use to the op before the release. */
static void find_lives(struct lives *l)
{
    const struct s4d_program *p = l->p;
    struct s4d_clocks clocks = s4d_clocks_make(p);
    size_t cells = (size_t)p->n_storages * S4D_STREAMS;
    int *position = s4d_malloc(cells * sizeof(int)); /* of the last use; -1: none */
    for (size_t i = 0; i < cells; i++)
        position[i] = -1;
    for (int i = 0; i < p->n_storages; i++)
        l->first[i] = -1;
    for (int op = 0; op < p->n_ops; op++)
        for (int k = 0; k < s4d_op_kinds[p->ops[op].kind].n_operands; k++) {
            int tensor = p->ops[op].operand[k].tensor;
            if (tensor < 0)
                continue;
            int s = p->tensors[tensor].storage;
            l->first[s] = l->first[s] < 0 ? op : l->first[s];
            l->last[s] = op;
            position[(size_t)s * S4D_STREAMS + p->ops[op].stream] = p->ops[op].position;
        }
    for (int i = 0; i < p->n_storages; i++)
        if (l->kind[i] >= 0 && l->first[i] >= 0 && p->ops[l->last[i]].stream != S4D_STREAM_COMPUTE)
            l->last[i] = released(l, &clocks, position + (size_t)i * S4D_STREAMS, i) - 1;
    s4d_clocks_free(&clocks);
    free(position);
}

static bool same_group(const struct s4d_label *a, const struct s4d_label *b)
{
    return a->phase == b->phase && a->layer == b->layer && a->micro_batch == b->micro_batch;
}

/* The list visits few groups at a time: the newest op of the same group is near. */
static void number_ops(struct lives *l)
{
    const struct s4d_program *p = l->p;
    for (int i = 0; i < p->n_ops; i++) {
        int before = i - 1;
        while (before >= 0 && !same_group(&p->ops[before].label, &p->ops[i].label))
            before--;
        l->ordinal[i] = before < 0 ? 0 : l->ordinal[before] + 1;
    }
}

static void count_live(struct lives *l)
{
    const struct s4d_program *p = l->p;
    int n = p->n_ops;
    for (int i = 0; i < p->n_storages; i++)
        if (l->kind[i] >= 0 && l->first[i] >= 0) {
            l->live[l->first[i]][l->kind[i]]++;
            if (l->last[i] + 1 < n)
                l->live[l->last[i] + 1][l->kind[i]]--;
        }
    for (int op = 1; op < n; op++)
        for (int k = 0; k < KINDS; k++)
            l->live[op][k] = (int16_t)(l->live[op][k] + l->live[op - 1][k]);
}

static struct lives lives_make(const struct s4d_program *p, struct s4d_outline *o)
{
    size_t storages = (size_t)p->n_storages, ops = (size_t)p->n_ops;
    struct lives l = {.p = p,
                      .first = s4d_malloc(storages * sizeof(int)),
                      .last = s4d_calloc(storages, sizeof(int)),
                      .kind = s4d_malloc(storages * sizeof(int)),
                      .ordinal = s4d_malloc(ops * sizeof(int)),
                      .live = s4d_calloc(ops, sizeof *l.live)};
    for (int i = 0; i < p->n_storages; i++) {
        l.kind[i] = -1;
        if (is_counted(&p->storages[i])) {
            struct s4d_storage_kind kind = kind_of(p, &p->storages[i]);
            l.kind[i] = find_kind(o, &kind);
            S4D_ASSERT(l.kind[i] < KINDS, "more than %d kinds of storages", KINDS);
        }
    }
    find_lives(&l);
    number_ops(&l);
    count_live(&l);
    return l;
}

static void lives_free(struct lives *l)
{
    free(l->first);
    free(l->last);
    free(l->kind);
    free(l->ordinal);
    free(l->live);
}

/* The op of `longer` that is to it what op i is to base, when layer `at` is the added one. */
static int counterpart(const struct lives *base, int i, const struct lives *longer, int at)
{
    struct s4d_label label = base->p->ops[i].label;
    label.layer += label.layer >= at;
    for (int j = i; j < longer->p->n_ops; j++)
        if (longer->ordinal[j] == base->ordinal[i] && same_group(&longer->p->ops[j].label, &label))
            return j;
    return -1;
}

/* --- the outline ---------------------------------------------------------------------------- */

/* Something is given up after op i, and not replaced by its like. */
static bool is_peak(const struct lives *l, int i)
{
    bool falls = i + 1 == l->p->n_ops;
    for (int k = 0; k < KINDS && !falls; k++)
        falls = l->live[i + 1][k] < l->live[i][k];
    return falls;
}

static bool covers(const struct s4d_outline_row *a, const struct s4d_outline_row *b, int n)
{
    for (int k = 0; k < n; k++)
        if (a->count[k] < b->count[k] || a->layer[k] < b->layer[k] || a->cached[k] < b->cached[k])
            return false;
    return true;
}

static void add_row(struct s4d_outline *o, const struct s4d_outline_row *row)
{
    for (int i = 0; i < o->n_rows; i++)
        if (covers(&o->row[i], row, o->n_kinds))
            return;
    int kept = 0;
    for (int i = 0; i < o->n_rows; i++)
        if (!covers(row, &o->row[i], o->n_kinds))
            o->row[kept++] = o->row[i];
    o->n_rows = kept;
    s4d_push(o->row, o->n_rows, o->cap_rows, *row);
}

static struct s4d_outline_row new_row(struct s4d_outline *o)
{
    size_t bytes = (size_t)o->n_kinds * sizeof(int);
    return (struct s4d_outline_row){.count = s4d_arena_alloc(&o->memory, bytes),
                                    .layer = s4d_arena_alloc(&o->memory, bytes),
                                    .cached = s4d_arena_alloc(&o->memory, bytes)};
}

struct s4d_outline *s4d_outline_make(const struct s4d_program *base,
                                     const struct s4d_program *longer, int at,
                                     const struct s4d_program *cached, int cached_at)
{
    struct s4d_outline *o = s4d_calloc(1, sizeof *o);
    o->layers = base->model.num_layers;
    struct lives b = lives_make(base, o), l = lives_make(longer, o), c = {0};
    if (cached)
        c = lives_make(cached, o);
    for (int i = 0; i < base->n_ops; i++) {
        if (!is_peak(&b, i))
            continue;
        struct s4d_outline_row row = new_row(o);
        int j = counterpart(&b, i, &l, at), m = cached ? counterpart(&b, i, &c, cached_at) : -1;
        for (int k = 0; k < o->n_kinds; k++) {
            row.count[k] = b.live[i][k];
            row.layer[k] = j < 0 ? 0 : l.live[j][k] - b.live[i][k];
            row.cached[k] = m < 0 ? 0 : c.live[m][k] - b.live[i][k] - row.layer[k];
        }
        add_row(o, &row);
    }
    lives_free(&b);
    lives_free(&l);
    if (cached)
        lives_free(&c);
    return o;
}

void s4d_outline_free(struct s4d_outline *o)
{
    if (!o)
        return;
    free(o->kind);
    free(o->row);
    s4d_arena_free(&o->memory);
    free(o);
}
