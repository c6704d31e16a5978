/* SPDX-License-Identifier: Apache-2.0 */
/* A machine as a file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/machine_fields.h"
#include "support/memory.h"

/* In double quotes; control characters, which YAML takes no other way, by their number. */
static void put_text(FILE *out, const char *text)
{
    putc('"', out);
    for (const char *c = text ? text : ""; *c; c++) {
        if (*c == '"' || *c == '\\')
            putc('\\', out);
        if ((unsigned char)*c < ' ' || *c == 127)
            fprintf(out, "\\x%02x", (unsigned)*c);
        else
            putc(*c, out);
    }
    putc('"', out);
}

static void put_origin(FILE *out, const char *indent, enum s4d_tag tag, const char *source)
{
    fprintf(out, "%stag: %s\n%ssource: ", indent, s4d_tag_names[tag], indent);
    put_text(out, source);
    fputs("\n", out);
}

static void put_quantity(FILE *out, const char *indent, const char *key,
                         const struct s4d_quantity *q, int count)
{
    char text[96];
    fprintf(out, "%s%s: { value: %s", indent, key, count > 1 ? "[" : "");
    for (int i = 0; i < count; i++) {
        s4d_format_quantity(key, q[i].value, text, sizeof text);
        fprintf(out, "%s%s", i ? ", " : "", text);
    }
    fprintf(out, "%s, tag: %s, source: ", count > 1 ? "]" : "", s4d_tag_names[q->tag]);
    put_text(out, q->source);
    fputs(" }\n", out);
}

static void put_fields(FILE *out, const struct s4d_machine *m, const char *indent,
                       const char *section)
{
    for (const struct s4d_machine_field *f = s4d_machine_fields; f->key; f++) {
        const struct s4d_quantity *q = s4d_field_quantity(m, f);
        bool absent = f->absent && isinf(q->value) && q->source && !strcmp(q->source, f->absent);
        if (strcmp(f->section, section) == 0 && s4d_field_used(m, f) && !absent)
            put_quantity(out, indent, f->key, q, f->count);
    }
}

/* key: [a, b, c], wrapped. */
static void put_list(FILE *out, const char *indent, const char *key, const double *v, int n,
                     const char *unit_key)
{
    int width = fprintf(out, "%s%s: [", indent, key);
    for (int i = 0; i < n; i++) {
        char text[96];
        s4d_format_quantity(unit_key, v[i], text, sizeof text);
        if (width + (int)strlen(text) > 94)
            width = fprintf(out, "\n%s  ", indent) - 1;
        width += fprintf(out, "%s%s", text, i + 1 < n ? ", " : "");
    }
    fputs("]\n", out);
}

static void put_curve(FILE *out, const char *indent, const struct s4d_curve *c, const char *key_x,
                      const char *key_y)
{
    put_origin(out, indent, c->tag, c->source ? c->source : "none");
    put_list(out, indent, key_x, c->x, c->n, key_x);
    put_list(out, indent, key_y, c->y, c->n, key_y);
}

static void put_attention(FILE *out, const struct s4d_device *d)
{
    fprintf(out, "  attention:%s\n", d->n_attention ? "" : " []");
    for (int i = 0; i < d->n_attention; i++) {
        const struct s4d_attention_row *a = &d->attention[i];
        fprintf(out, "    - head_dim: %d\n      causal: %s\n      pass: %s\n", a->head_dim,
                a->causal ? "true" : "false", a->backward ? "backward" : "forward");
        put_curve(out, "      ", &a->flops_per_s, "seq_length", "flops_per_s");
    }
}

static void put_gemm(FILE *out, const struct s4d_gemm_table *t)
{
    if (t->n == 0)
        return;
    fputs("  gemm:\n", out);
    put_origin(out, "    ", t->tag, t->source);
    fputs("    rows:\n", out);
    for (int i = 0; i < t->n; i++) {
        const struct s4d_gemm_row *r = &t->row[i];
        char rate[64];
        s4d_format_quantity("flops_per_s", r->flops_per_s, rate, sizeof rate);
        fprintf(out, "      - { shape: [%d, %d, %d], transpose: %c%c, flops_per_s: %s }\n", r->m,
                r->n, r->k, r->transpose_a ? 't' : 'n', r->transpose_b ? 't' : 'n', rate);
    }
}

static void put_kernels(FILE *out, const struct s4d_device *d)
{
    if (d->n_kernels > 0)
        fputs("  kernels:\n", out);
    for (int i = 0; i < d->n_kernels; i++) {
        fprintf(out, "    - kind: %s\n", d->kernel[i].kind);
        put_curve(out, "      ", &d->kernel[i].bandwidth_Bps, "size_bytes", "bandwidth_Bps");
    }
}

static void put_device(FILE *out, const struct s4d_machine *m)
{
    const struct s4d_device *d = &m->device;
    fputs("\ndevice:\n  name: ", out);
    put_text(out, d->name);
    fputs("\n  compute_types: [", out);
    const char *types = d->compute_types[0] ? d->compute_types : "f64 f32 bf16 f16";
    for (const char *c = types; *c; c++)
        fputs(*c == ' ' ? ", " : (char[]){*c, '\0'}, out);
    fputs("]\n", out);
    put_fields(out, m, "  ", "device");
    fputs("  memory_efficiency:\n", out);
    put_curve(out, "    ", &d->memory_efficiency, "size_bytes", "part");
    put_attention(out, d);
    put_gemm(out, &d->gemm);
    put_kernels(out, d);
}

static void put_links(FILE *out, const struct s4d_node *node)
{
    fprintf(out, "  links:%s\n", node->n_links ? "" : " []");
    for (int i = 0, end; i < node->n_links; i = end) {
        const struct s4d_node_link *first = &node->link[i];
        fputs("    - pairs: [", out);
        for (end = i; end < node->n_links && node->link[end].kind == first->kind; end++)
            fprintf(out, "%s[%d, %d]", end > i ? ", " : "", node->link[end].a, node->link[end].b);
        fprintf(out, "]\n      bricks: %d\n", first->bricks);
        put_quantity(out, "      ", "brick_bandwidth_Bps", &first->brick_bandwidth_Bps, 1);
    }
}

static void put_node(FILE *out, const struct s4d_machine *m)
{
    const struct s4d_node *node = &m->node;
    fprintf(out, "\nnode:\n  layout:\n    devices: %d\n", node->devices);
    if (node->switches > 0)
        fprintf(out, "    switches: %d\n", node->switches);
    fputs("    nics: [", out);
    for (int i = 0; i < node->n_nics; i++)
        fprintf(out, "%s%d", i ? ", " : "", node->nic[i].device);
    fputs("]\n    rank_to_device: [", out);
    for (int i = 0; i < node->devices; i++)
        fprintf(out, "%s%d", i ? ", " : "", node->rank_to_device[i]);
    fputs("]\n", out);
    put_origin(out, "    ", node->layout.tag, node->layout.source);
    put_links(out, node);
    put_fields(out, m, "  ", "node");
}

static void put_parameter(FILE *out, const struct s4d_parameter *p)
{
    if (!p->word[0]) {
        put_quantity(out, "  ", p->key, &p->value, 1);
        return;
    }
    fprintf(out, "  %s: { value: %s, tag: %s, source: ", p->key, p->word,
            s4d_tag_names[p->value.tag]);
    put_text(out, p->value.source);
    fputs(" }\n", out);
}

static void put_fabric(FILE *out, const struct s4d_machine *m)
{
    const struct s4d_fabric *f = &m->fabric;
    struct s4d_quantity nodes = {f->nodes, f->nodes_origin.tag, f->nodes_origin.source};
    fprintf(out, "\nfabric:\n  topology: %s\n", f->topology);
    put_quantity(out, "  ", "nodes", &nodes, 1);
    put_fields(out, m, "  ", "fabric");
    for (int i = 0; i < f->n_parameters; i++)
        put_parameter(out, &f->parameter[i]);
}

/* Rows of one rank count and layout lie together, as they were read. */
static void put_table(FILE *out, const struct s4d_efficiency_table *t)
{
    fprintf(out, "    - op: %s\n", t->op);
    put_origin(out, "      ", t->tag, t->source);
    fputs("      rows:\n", out);
    double *x = s4d_malloc((size_t)t->n * sizeof *x), *y = s4d_malloc((size_t)t->n * sizeof *y);
    for (int i = 0, n; i < t->n; i += n) {
        const struct s4d_efficiency_row *r = &t->row[i];
        for (n = 0;
             i + n < t->n && r[n].ranks == r->ranks && r[n].ranks_per_node == r->ranks_per_node;
             n++) {
            x[n] = r[n].bytes;
            y[n] = r[n].efficiency;
        }
        fprintf(out, "        - ranks: %d\n          ranks_per_node: %d\n", r->ranks,
                r->ranks_per_node);
        put_list(out, "          ", "size_bytes", x, n, "size_bytes");
        put_list(out, "          ", "efficiency", y, n, "efficiency");
    }
    free(x);
    free(y);
}

static void put_library(FILE *out, const struct s4d_machine *m)
{
    const struct s4d_library *l = &m->library;
    fprintf(out, "\nlibrary:\n  name: %s\n", l->name);
    if (s4d_library_has_constants(l)) {
        fputs("  ring:\n", out);
        put_fields(out, m, "    ", "library.ring");
        fputs("  tree:\n", out);
        put_fields(out, m, "    ", "library.tree");
        if (l->nvls.present)
            fputs("  nvls:\n", out);
        put_fields(out, m, "    ", "library.nvls");
    }
    put_fields(out, m, "  ", "library");
    fprintf(out, "  efficiency:%s\n", l->n_tables ? "" : " []");
    for (int i = 0; i < l->n_tables; i++)
        put_table(out, &l->table[i]);
}

void s4d_machine_write(const struct s4d_machine *m, FILE *out)
{
    fputs("# SPDX-License-Identifier: Apache-2.0\ndescription: ", out);
    put_text(out, m->description);
    fputs("\n", out);
    put_device(out, m);
    put_node(out, m);
    put_fabric(out, m);
    put_library(out, m);
}
