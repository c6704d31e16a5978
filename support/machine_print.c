/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a machine says, walked once: for people and for programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/machine_fields.h"
#include "support/memory.h"

struct entry {
    const char *key;
    enum s4d_tag tag;
    const char *source;
    double value;     /* NAN: a structure, whose points follow */
    const char *text; /* what a structure is, NULL otherwise */
    const char *unit; /* a key whose suffix is the unit */
    bool point;       /* of a curve or table */
    struct numbers {
        const double *first; /* NULL: no numbers, or not to be scaled */
        size_t step;         /* bytes from one to the next */
        int n;
    } numbers; /* that a structure or a quantity stands for */
    bool part; /* they are parts of something, at most 1 */
};
struct walk {
    void (*see)(void *context, const struct entry *e);
    void *context;
};

/* n quantities alike, `step` bytes apart. */
static void see_all(const struct walk *w, const char *key, const char *unit,
                    const struct s4d_quantity *q, size_t step, int n, bool part)
{
    struct entry e = {.key = key,
                      .tag = q->tag,
                      .source = q->source,
                      .value = q->value,
                      .unit = unit,
                      .numbers = {&q->value, step, n},
                      .part = part};
    w->see(w->context, &e);
}

static void see(const struct walk *w, const char *key, const char *unit,
                const struct s4d_quantity *q, bool part)
{
    see_all(w, key, unit, q, sizeof *q, 1, part);
}

static void see_structure(const struct walk *w, const char *key, enum s4d_tag tag,
                          const char *source, const char *text, struct numbers numbers, bool part)
{
    struct entry e = {.key = key,
                      .tag = tag,
                      .source = source,
                      .value = NAN,
                      .text = text,
                      .unit = key,
                      .numbers = numbers,
                      .part = part};
    w->see(w->context, &e);
}

static void see_point(const struct walk *w, const char *key, const char *unit, enum s4d_tag tag,
                      const char *source, double value)
{
    struct entry e = {
        .key = key, .tag = tag, .source = source, .value = value, .unit = unit, .point = true};
    w->see(w->context, &e);
}

static void walk_fields(const struct s4d_machine *m, const char *section, const struct walk *w)
{
    for (const struct s4d_machine_field *f = s4d_machine_fields; f->key; f++) {
        const struct s4d_quantity *q = s4d_field_quantity(m, f);
        if (strcmp(f->section, section) != 0 || !s4d_field_used(m, f))
            continue;
        for (int i = 0; i < f->count; i++) {
            char *key = s4d_asprintf("%s.%s%s%s", section, f->key, f->count > 1 ? "." : "",
                                     f->count > 1 ? s4d_protocol_names[i] : "");
            see(w, key, f->key, &q[i], f->range == S4D_FRACTION);
            free(key);
        }
    }
}

static void walk_curve(const char *name, const struct s4d_curve *c, bool x_is_bytes,
                       const char *y_key, const struct walk *w)
{
    see_structure(w, name, c->tag, c->source, "a curve", (struct numbers){c->y, sizeof *c->y, c->n},
                  strcmp(y_key, "part") == 0);
    for (int i = 0; i < c->n; i++) {
        char x[32];
        if (x_is_bytes)
            s4d_format_quantity("size_bytes", c->x[i], x, sizeof x);
        else
            snprintf(x, sizeof x, "%.0f", c->x[i]);
        char *key = s4d_asprintf("%s[%s]", name, x);
        see_point(w, key, y_key, c->tag, c->source, c->y[i]);
        free(key);
    }
}

static void walk_gemm(const struct s4d_gemm_table *t, const struct walk *w)
{
    if (t->n > 0)
        see_structure(w, "device.gemm", t->tag, t->source, "a table",
                      (struct numbers){&t->row->flops_per_s, sizeof *t->row, t->n}, false);
    for (int i = 0; i < t->n; i++) {
        const struct s4d_gemm_row *r = &t->row[i];
        char *key = s4d_asprintf("device.gemm[%d,%d,%d,%c%c]", r->m, r->n, r->k,
                                 r->transpose_a ? 't' : 'n', r->transpose_b ? 't' : 'n');
        see_point(w, key, "flops_per_s", t->tag, t->source, r->flops_per_s);
        free(key);
    }
}

static void walk_device(const struct s4d_machine *m, const struct walk *w)
{
    const struct s4d_device *d = &m->device;
    walk_fields(m, "device", w);
    if (d->memory_efficiency.n > 0)
        walk_curve("device.memory_efficiency", &d->memory_efficiency, true, "part", w);
    for (int i = 0; i < d->n_attention; i++) {
        const struct s4d_attention_row *a = &d->attention[i];
        char *name =
            s4d_asprintf("device.attention.head_dim_%d.%s.%s", a->head_dim,
                         a->causal ? "causal" : "full", a->backward ? "backward" : "forward");
        walk_curve(name, &a->flops_per_s, false, "flops_per_s", w);
        free(name);
    }
    walk_gemm(&d->gemm, w);
    for (int i = 0; i < d->n_kernels; i++) {
        char *name = s4d_asprintf("device.kernels.%s", d->kernel[i].kind);
        walk_curve(name, &d->kernel[i].bandwidth_Bps, true, "bandwidth_Bps", w);
        free(name);
    }
}

static void walk_node(const struct s4d_machine *m, const struct walk *w)
{
    const struct s4d_node *node = &m->node;
    char text[96];
    snprintf(text, sizeof text, "%d devices", node->devices);
    see_structure(w, "node.layout", node->layout.tag, node->layout.source, text,
                  (struct numbers){0}, false);
    walk_fields(m, "node", w);
    for (int i = 0, kind = -1; i < node->n_links; i++) {
        if (node->link[i].kind == kind)
            continue;
        kind = node->link[i].kind;
        char *key = s4d_asprintf("node.links.%d.brick_bandwidth_Bps", kind);
        int n = 1;
        while (i + n < node->n_links && node->link[i + n].kind == kind)
            n++;
        see_all(w, key, key, &node->link[i].brick_bandwidth_Bps, sizeof *node->link, n, false);
        free(key);
    }
}

static void walk_fabric(const struct s4d_machine *m, const struct walk *w)
{
    const struct s4d_fabric *f = &m->fabric;
    struct s4d_quantity nodes = {f->nodes, f->nodes_origin.tag, f->nodes_origin.source};
    struct entry e = {.key = "fabric.nodes", /* a count of its own: no double to scale */
                      .tag = nodes.tag,
                      .source = nodes.source,
                      .value = nodes.value,
                      .unit = "nodes"};
    w->see(w->context, &e);
    walk_fields(m, "fabric", w);
    for (int i = 0; i < f->n_parameters; i++) {
        char *key = s4d_asprintf("fabric.%s", f->parameter[i].key);
        const struct s4d_parameter *p = &f->parameter[i];
        if (p->word[0])
            see_structure(w, key, p->value.tag, p->value.source, p->word, (struct numbers){0},
                          false);
        else
            see(w, key, key, &p->value, false);
        free(key);
    }
}

static void walk_library(const struct s4d_machine *m, const struct walk *w)
{
    static const char *const sections[] = {"library.ring", "library.tree", "library.nvls",
                                           "library"};
    for (int i = 0; i < 4; i++)
        walk_fields(m, sections[i], w);
    for (int i = 0; i < m->library.n_tables; i++) {
        const struct s4d_efficiency_table *t = &m->library.table[i];
        char *name = s4d_asprintf("library.efficiency.%s", t->op);
        see_structure(w, name, t->tag, t->source, "a table",
                      (struct numbers){&t->row->efficiency, sizeof *t->row, t->n}, true);
        for (int j = 0; j < t->n; j++) {
            char bytes[32];
            s4d_format_quantity("size_bytes", t->row[j].bytes, bytes, sizeof bytes);
            char *key = s4d_asprintf("%s[%d,%d,%s]", name, t->row[j].ranks,
                                     t->row[j].ranks_per_node, bytes);
            see_point(w, key, "efficiency", t->tag, t->source, t->row[j].efficiency);
            free(key);
        }
        free(name);
    }
}

static void walk_all(const struct s4d_machine *m, const struct walk *w)
{
    walk_device(m, w);
    walk_node(m, w);
    walk_fabric(m, w);
    walk_library(m, w);
}

static void print_entry(void *context, const struct entry *e)
{
    char text[96];
    if (e->text)
        snprintf(text, sizeof text, "%s", e->text);
    else
        s4d_format_quantity(e->unit, e->value, text, sizeof text);
    fprintf(context, "%-52s %-16s %-9s %s\n", e->key, text, s4d_tag_names[e->tag],
            e->point ? "as above" : e->source);
}

void s4d_machine_print(const struct s4d_machine *m, FILE *out)
{
    struct walk w = {print_entry, out};
    fprintf(out, "# %s: %s\n", m->name, m->description);
    fprintf(out, "# device %s (%s), topology %s, library %s, contents %s\n", m->device.name,
            m->device.compute_types[0] ? m->device.compute_types : "any type", m->fabric.topology,
            m->library.name, m->hash);
    fprintf(out, "%-52s %-16s %-9s %s\n", "# key", "value", "tag", "source");
    walk_all(m, &w);
}

struct visitor {
    void (*visit)(void *context, const char *key, enum s4d_tag tag, const char *source,
                  double value);
    void *context;
};

static void visit_entry(void *context, const struct entry *e)
{
    const struct visitor *v = context;
    if (!e->point)
        v->visit(v->context, e->key, e->tag, e->source, e->value);
}

void s4d_machine_visit(const struct s4d_machine *m,
                       void (*visit)(void *context, const char *key, enum s4d_tag tag,
                                     const char *source, double value),
                       void *context)
{
    struct visitor v = {visit, context};
    struct walk w = {visit_entry, &v};
    walk_all(m, &w);
}

struct scaling {
    const char *key;
    double factor;
    bool changed;
};

/* A count stays a whole number of at least 1; a part stays at most 1. */
static double scaled(const struct entry *e, double value, double factor)
{
    bool counts =
        strncmp(e->key, "fabric.", 7) == 0 && value == floor(value) && s4d_key_has_no_unit(e->unit);
    double to = value * factor;
    if (counts)
        return fmax(1, floor(to));
    return e->part ? fmin(to, fmax(1, value)) : to;
}

static void scale_entry(void *context, const struct entry *e)
{
    struct scaling *s = context;
    if (e->point || strcmp(e->key, s->key) != 0)
        return;
    for (int i = 0; i < e->numbers.n; i++) {
        double *number = (double *)((char *)e->numbers.first + (size_t)i * e->numbers.step);
        double to = scaled(e, *number, s->factor);
        s->changed = s->changed || to != *number;
        *number = to;
    }
}

bool s4d_machine_scale(struct s4d_machine *m, const char *key, double factor)
{
    struct scaling s = {key, factor, false};
    struct walk w = {scale_entry, &s};
    walk_all(m, &w);
    return s.changed;
}
