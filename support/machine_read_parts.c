/* SPDX-License-Identifier: Apache-2.0 */
/* The node and library sections of a machine file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/machine_read.h"
#include "support/memory.h"
#include "support/quote.h"

/* Known keys of a section: its fields of the table, then the others. */
int s4d_known_keys(const struct s4d_machine *m, const char *section, const char *const *others,
                   int n_others, const char *keys[S4D_KEYS])
{
    int n = 0;
    for (const struct s4d_machine_field *f = s4d_machine_fields; f->key; f++) {
        if (strcmp(f->section, section) == 0 && s4d_field_used(m, f))
            keys[n++] = f->key;
    }
    for (int i = 0; i < n_others; i++)
        keys[n++] = others[i];
    S4D_ASSERT(n <= S4D_KEYS, "%d keys", n);
    return n;
}

static int read_pair(struct s4d_node *node, const struct s4d_yaml_node *pair, int kind, int bricks,
                     const struct s4d_quantity *bandwidth, struct s4d_error *err)
{
    struct s4d_node_link link = {.kind = kind, .bricks = bricks};
    if (pair->kind != S4D_YAML_SEQUENCE || pair->n != 2)
        return s4d_yaml_fail(pair, err, "expected a pair of devices, [0, 1]");
    if (s4d_read_int(pair->child[0], 0, node->devices + node->switches - 1, &link.a, err) ||
        s4d_read_int(pair->child[1], 0, node->devices + node->switches - 1, &link.b, err))
        return -1;
    if (link.a == link.b)
        return s4d_yaml_fail(pair, err, "expected two different devices, found %d twice", link.a);
    for (int i = node->n_links - 1; i >= 0 && node->link[i].kind == kind; i--) {
        const struct s4d_node_link *l = &node->link[i];
        if ((l->a == link.a && l->b == link.b) || (l->a == link.b && l->b == link.a))
            return s4d_yaml_fail(pair, err, "[%d, %d] is given twice: bricks says how many", link.a,
                                 link.b);
    }
    node->link = s4d_realloc(node->link, ((size_t)node->n_links + 1) * sizeof *node->link);
    s4d_quantity_set(&link.brick_bandwidth_Bps, bandwidth->value, bandwidth->tag,
                     bandwidth->source);
    node->link[node->n_links++] = link;
    return 0;
}

static int read_link_kind(struct s4d_node *node, const struct s4d_yaml_node *row, int kind,
                          struct s4d_error *err)
{
    static const char *const keys[] = {"pairs", "bricks", "brick_bandwidth_Bps"};
    const struct s4d_yaml_node *pairs, *bricks_node, *bandwidth;
    struct s4d_quantity q = {0};
    int bricks, rc = -1;
    if (row->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(row, err,
                             "expected a mapping with pairs, bricks, "
                             "brick_bandwidth_Bps");
    if (s4d_read_only(row, keys, 3, err) ||
        s4d_read_child(row, "pairs", S4D_YAML_SEQUENCE, &pairs, err) ||
        s4d_read_child(row, "bricks", S4D_YAML_SCALAR, &bricks_node, err) ||
        s4d_read_int(bricks_node, 1, 1024, &bricks, err) ||
        s4d_read_child(row, "brick_bandwidth_Bps", S4D_YAML_MAPPING, &bandwidth, err))
        return -1;
    if (s4d_read_quantity(bandwidth, "brick_bandwidth_Bps", &q, err))
        goto out;
    if (!(q.value > 0) || isinf(q.value)) {
        s4d_yaml_fail(bandwidth, err, "expected more than 0, and not unlimited");
        goto out;
    }
    for (int i = 0; i < pairs->n; i++) {
        if (read_pair(node, pairs->child[i], kind, bricks, &q, err))
            goto out;
    }
    rc = 0;
out:
    free(q.source);
    return rc;
}

/* A list of numbers below n, those below `once` each at most once: `nics` and `rank_to_device`. */
static int read_devices(const struct s4d_yaml_node *list, int n, int once, int *device,
                        struct s4d_error *err)
{
    for (int i = 0; i < list->n; i++) {
        if (s4d_read_int(list->child[i], 0, n - 1, &device[i], err))
            return -1;
        for (int j = 0; j < i; j++) {
            if (device[j] == device[i] && device[i] < once)
                return s4d_yaml_fail(list->child[i], err, "device %d is listed twice", device[i]);
        }
    }
    return 0;
}

enum { MOST_NICS = 1024 };

static int read_layout(struct s4d_node *node, const struct s4d_yaml_node *layout,
                       struct s4d_error *err)
{
    static const char *const keys[] = {"devices", "nics",   "rank_to_device",
                                       "tag",     "source", "switches"};
    const struct s4d_yaml_node *devices, *nics, *map, *switches = s4d_yaml_get(layout, "switches");
    if (s4d_read_only(layout, keys, 6, err) ||
        (switches && s4d_read_int(switches, 1, 1024, &node->switches, err)) ||
        s4d_read_origin(layout, &node->layout.tag, &node->layout.source, err) ||
        s4d_read_child(layout, "devices", S4D_YAML_SCALAR, &devices, err) ||
        s4d_read_int(devices, 1, 1024, &node->devices, err) ||
        s4d_read_child(layout, "nics", S4D_YAML_SEQUENCE, &nics, err) ||
        s4d_read_child(layout, "rank_to_device", S4D_YAML_SEQUENCE, &map, err))
        return -1;
    if (map->n != node->devices)
        return s4d_yaml_fail(map, err, "expected the %d devices in rank order, found %d",
                             node->devices, map->n);
    if (node->switches == 0 && nics->n > node->devices)
        return s4d_yaml_fail(nics, err, "expected at most one NIC a device");
    if (nics->n > MOST_NICS)
        return s4d_yaml_fail(nics, err, "expected at most %d NICs, found %d", MOST_NICS, nics->n);
    int *device = s4d_calloc((size_t)nics->n + 1, sizeof *device);
    node->rank_to_device = s4d_calloc((size_t)node->devices, sizeof(int));
    node->nic = s4d_calloc((size_t)nics->n + 1, sizeof *node->nic);
    node->n_nics = nics->n;
    int n = node->devices, all = n + node->switches;
    int rc = read_devices(map, n, n, node->rank_to_device, err) ||
             read_devices(nics, all, n, device, err);
    for (int i = 0; i < nics->n; i++)
        node->nic[i].device = device[i];
    free(device);
    return rc ? -1 : 0;
}

int s4d_read_node(struct s4d_machine *m, const struct s4d_yaml_node *section, struct s4d_error *err)
{
    static const char *const others[] = {"layout", "links"};
    const char *keys[S4D_KEYS];
    const struct s4d_yaml_node *layout, *links;
    int n = s4d_known_keys(m, "node", others, 2, keys);
    if (s4d_read_only(section, keys, n, err) || s4d_read_fields(m, "node", section, err) ||
        s4d_read_child(section, "layout", S4D_YAML_MAPPING, &layout, err) ||
        read_layout(&m->node, layout, err) ||
        s4d_read_child(section, "links", S4D_YAML_SEQUENCE, &links, err))
        return -1;
    for (int i = 0; i < links->n; i++) {
        if (read_link_kind(&m->node, links->child[i], i, err))
            return -1;
    }
    return 0;
}

static int read_efficiency_rows(struct s4d_efficiency_table *t, const struct s4d_yaml_node *group,
                                struct s4d_error *err)
{
    static const char *const keys[] = {"ranks", "ranks_per_node", "size_bytes", "efficiency"};
    const struct s4d_yaml_node *node, *x, *y;
    struct s4d_efficiency_row row = {0};
    if (group->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(group, err, "expected a mapping with ranks, ranks_per_node, ...");
    if (s4d_read_only(group, keys, 4, err) ||
        s4d_read_child(group, "ranks", S4D_YAML_SCALAR, &node, err) ||
        s4d_read_int(node, 2, 1 << 24, &row.ranks, err) ||
        s4d_read_child(group, "ranks_per_node", S4D_YAML_SCALAR, &node, err) ||
        s4d_read_int(node, 1, 1024, &row.ranks_per_node, err) ||
        s4d_read_child(group, "size_bytes", S4D_YAML_SEQUENCE, &x, err) ||
        s4d_read_child(group, "efficiency", S4D_YAML_SEQUENCE, &y, err))
        return -1;
    if (row.ranks_per_node > row.ranks)
        return s4d_yaml_fail(group, err, "expected at most %d ranks_per_node, found %d", row.ranks,
                             row.ranks_per_node);
    if (x->n != y->n || x->n < 2)
        return s4d_yaml_fail(
            group, err, "expected as many sizes as efficiencies, at least two; found %d and %d",
            x->n, y->n);
    for (int i = 0; i < t->n; i++) {
        if (t->row[i].ranks == row.ranks && t->row[i].ranks_per_node == row.ranks_per_node)
            return s4d_yaml_fail(group, err, "%d ranks, %d a node: given twice", row.ranks,
                                 row.ranks_per_node);
    }
    t->row = s4d_realloc(t->row, (size_t)(t->n + x->n) * sizeof *t->row);
    for (int i = 0; i < x->n; i++) {
        double last = i ? row.bytes : 0;
        if (s4d_read_value(x, i, "size_bytes", &row.bytes, err) ||
            s4d_read_value(y, i, "efficiency", &row.efficiency, err))
            return -1;
        if (!(row.bytes > last) || isinf(row.bytes))
            return s4d_yaml_fail(x, err, "expected sizes above 0, each above the last");
        if (!(row.efficiency > 0 && row.efficiency <= 4))
            return s4d_yaml_fail(y, err, "expected above 0 and at most 4");
        t->row[t->n++] = row;
    }
    return 0;
}

static int read_efficiency(struct s4d_library *l, const struct s4d_yaml_node *node,
                           struct s4d_error *err)
{
    static const char *const keys[] = {"op", "tag", "source", "rows"};
    static const char *const ops[] = {"all-reduce", "all-gather", "reduce-scatter"};
    const struct s4d_yaml_node *rows;
    struct s4d_efficiency_table *t = &l->table[l->n_tables++];
    if (node->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(node, err, "expected a mapping with op, tag, source, rows");
    if (s4d_read_only(node, keys, 4, err) || s4d_read_name(node, "op", t->op, sizeof t->op, err) ||
        s4d_read_origin(node, &t->tag, &t->source, err) ||
        s4d_read_child(node, "rows", S4D_YAML_SEQUENCE, &rows, err))
        return -1;
    bool known = false;
    for (int i = 0; i < 3; i++)
        known = known || strcmp(t->op, ops[i]) == 0;
    for (int i = 0; i + 1 < l->n_tables; i++)
        known = known && strcmp(l->table[i].op, t->op) != 0;
    if (!known)
        return s4d_yaml_fail(s4d_yaml_get(node, "op"), err,
                             "expected all-reduce, all-gather or reduce-scatter, each once");
    if (rows->n == 0)
        return s4d_yaml_fail(rows, err, "expected at least one row");
    for (int i = 0; i < rows->n; i++) {
        if (read_efficiency_rows(t, rows->child[i], err))
            return -1;
    }
    return 0;
}

static int read_pattern(struct s4d_machine *m, const struct s4d_yaml_node *library,
                        const char *pattern, const char *section, struct s4d_error *err)
{
    const char *keys[S4D_KEYS];
    const struct s4d_yaml_node *node;
    int n = s4d_known_keys(m, section, NULL, 0, keys);
    return s4d_read_child(library, pattern, S4D_YAML_MAPPING, &node, err) ||
                   s4d_read_only(node, keys, n, err) || s4d_read_fields(m, section, node, err)
               ? -1
               : 0;
}

int s4d_read_library(struct s4d_machine *m, const struct s4d_yaml_node *section,
                     struct s4d_error *err)
{
    static const char *const others[] = {"name", "efficiency", "ring", "tree", "nvls"};
    struct s4d_library *l = &m->library;
    const char *keys[S4D_KEYS];
    const struct s4d_yaml_node *tables;
    if (s4d_read_name(section, "name", l->name, sizeof l->name, err))
        return -1;
    bool mpi = strcmp(l->name, "mpi") == 0, ideal = mpi || strcmp(l->name, "ideal") == 0;
    if (!ideal && !s4d_library_has_constants(l))
        return s4d_yaml_fail(s4d_yaml_get(section, "name"), err,
                             "expected nccl, rccl, mpi or ideal, found %s",
                             s4d_quote(l->name).text);
    l->nvls.present = !ideal && s4d_yaml_get(section, "nvls");
    int n = s4d_known_keys(m, "library", others, ideal ? 2 : 5, keys);
    if (s4d_read_only(section, keys, n, err) ||
        s4d_read_child(section, "efficiency", S4D_YAML_SEQUENCE, &tables, err) ||
        s4d_read_fields(m, "library", section, err))
        return -1;
    if (!ideal && (read_pattern(m, section, "ring", "library.ring", err) ||
                   read_pattern(m, section, "tree", "library.tree", err) ||
                   (l->nvls.present && read_pattern(m, section, "nvls", "library.nvls", err))))
        return -1;
    if (l->nvls.present && m->node.switches == 0)
        return s4d_yaml_fail(s4d_yaml_get(section, "nvls"), err,
                             "the node has no switch that could add: expected node.layout.switches "
                             "and links to them");
    l->table = s4d_calloc((size_t)tables->n + 1, sizeof *l->table);
    for (int i = 0; i < tables->n; i++) {
        if (read_efficiency(l, tables->child[i], err))
            return -1;
    }
    if (mpi && tables->n < 3 && m->node.devices > 1)
        return s4d_yaml_fail(tables, err,
                             "mpi has no constants: expected all-reduce, all-gather "
                             "and reduce-scatter, found %d of them",
                             tables->n);
    return 0;
}
