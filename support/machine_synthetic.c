/* SPDX-License-Identifier: Apache-2.0 */
/* Machines in one line: synthetic:topology=single-switch,nodes=4096,nic=50GB/s,latency=500ns,
 * peak=312TFLOP/s.
 *
 * topology, nodes, nic, latency and peak are required; devices_per_node (1), link (per device pair
 * and direction; required with more than one device a node, refused with one), memory (unlimited),
 * memory_bandwidth (unlimited: memory-bound kernels are free) and library (ideal, or nccl) are not.
 * Any other key is a parameter of the topology (`scale4d fabrics` lists them). Everything else is
 * ideal: compute at peak, no launch time, collectives cost computing nothing. nic is per device;
 * latency is end to end between two devices, in a node too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/machine_fields.h"
#include "support/memory.h"
#include "support/units.h"

static const char line_source[] = "the machine's line";

struct line {
    char *text; /* cut at commas and equal signs */
    char *key[64], *value[64];
    bool used[64];
    int n;
};

static int cut(struct line *l, const char *text, struct s4d_error *err)
{
    l->text = s4d_strdup(text);
    char *rest = *text ? l->text : NULL, *item;
    while ((item = strsep(&rest, ",")) != NULL) {
        char *equal = strchr(item, '=');
        if (*item == '\0') {
            s4d_fail(err, S4D_EXIT_DATA, "synthetic", "expected key=value, found nothing %s",
                     rest ? "before a comma" : "after the last comma");
            return s4d_hint(err, "one comma between two keys, none at the ends");
        }
        if (!equal || equal == item || equal[1] == '\0')
            return s4d_fail(err, S4D_EXIT_DATA, "synthetic", "expected key=value, found '%s'",
                            item);
        *equal = '\0';
        for (int i = 0; i < l->n; i++) {
            if (strcmp(l->key[i], item) == 0)
                return s4d_fail(err, S4D_EXIT_DATA, "synthetic", "key '%s' is given twice", item);
        }
        if (l->n == 64)
            return s4d_fail(err, S4D_EXIT_DATA, "synthetic", "more than 64 keys");
        l->key[l->n] = item;
        l->value[l->n++] = equal + 1;
    }
    return 0;
}

static const char *take(struct line *l, const char *key)
{
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->key[i], key) == 0) {
            l->used[i] = true;
            return l->value[i];
        }
    }
    return NULL;
}

static int at(struct s4d_error *err, const char *key)
{
    if (err)
        snprintf(err->where, sizeof err->where, "synthetic: %s", key);
    return -1;
}

static int missing(struct s4d_error *err, const char *key)
{
    s4d_fail(err, S4D_EXIT_DATA, "", "missing");
    at(err, key);
    return s4d_hint(err, "for example synthetic:topology=single-switch,nodes=4,nic=50GB/s,"
                         "latency=500ns,peak=312TFLOP/s");
}

static int take_count(struct line *l, const char *key, int fallback, int64_t max, int *count,
                      struct s4d_error *err)
{
    const char *text = take(l, key);
    int64_t value = fallback;
    if (!text && fallback == 0)
        return missing(err, key);
    if (text && s4d_parse_int(text, 1, max, &value, err))
        return at(err, key);
    *count = (int)value;
    return 0;
}

/* The field's value from the line, in the unit of the field's key. */
struct item {
    const char *key, *section, *field;
    bool required;
    double fallback;
};
static const struct item items[] = {
    {"nic", "node", "nic_bandwidth_Bps", true, 0},
    {"peak", "device", "peak_flops_per_s", true, 0},
    {"latency", "fabric", "latency_s", true, 0},
    {"latency", "node", "latency_s", true, 0},
    {"peak", "device", "peak_measured_flops_per_s", true, 0},
    {"peak", "device", "gemm_flops_per_s", true, 0},
    {"memory", "device", "memory_bytes", false, INFINITY},
    {"memory_bandwidth", "device", "memory_bandwidth_Bps", false, INFINITY},
    {NULL, "device", "memory_reserve_bytes", false, 0},
    {NULL, "device", "launch_s", false, 0},
    {NULL, "device", "gemm_output_Bps", false, INFINITY},
    {NULL, "device", "rate_beside_in_node", false, 1},
    {NULL, "device", "rate_beside_across_nodes", false, 1},
    {NULL, "node", "host_bandwidth_Bps", false, INFINITY},
    {NULL, "node", "compute_units", false, INFINITY},
    {NULL, "library", "net_simple_s", false, INFINITY},
    {NULL, "library", "ll128_nodes", false, INFINITY},
};

static const struct s4d_machine_field *find_field(const char *section, const char *key)
{
    for (const struct s4d_machine_field *f = s4d_machine_fields; f->key; f++) {
        if (strcmp(f->section, section) == 0 && strcmp(f->key, key) == 0)
            return f;
    }
    s4d_bug(__FILE__, __LINE__, key, "no such field");
}

static int take_items(struct s4d_machine *m, struct line *l, struct s4d_error *err)
{
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        const struct s4d_machine_field *f = find_field(items[i].section, items[i].field);
        const char *text = items[i].key ? take(l, items[i].key) : NULL;
        double value = items[i].fallback;
        if (!text && items[i].required)
            return missing(err, items[i].key);
        if (text &&
            (s4d_parse_quantity(f->key, text, &value, err) || s4d_field_check(f, value, err)))
            return at(err, items[i].key);
        if (f->absent)
            s4d_quantity_set(s4d_field_quantity(m, f), value, S4D_TAG_DERIVED, f->absent);
        else
            s4d_quantity_set(s4d_field_quantity(m, f), value, S4D_TAG_ASSUMED,
                             text ? line_source : "ideal");
    }
    return 0;
}

static int make_node(struct s4d_machine *m, struct line *l, struct s4d_error *err)
{
    struct s4d_node *node = &m->node;
    if (take_count(l, "devices_per_node", 1, 64, &node->devices, err))
        return -1;
    const char *text = take(l, "link");
    double link = 0;
    if (!text && node->devices > 1) {
        missing(err, "link");
        return s4d_hint(err, "more than one device a node needs link=, the bandwidth of a pair");
    }
    if (text && node->devices == 1) {
        s4d_fail(err, S4D_EXIT_DATA, "", "a node of one device has no pair to link, found %s",
                 text);
        at(err, "link");
        return s4d_hint(err,
                        "devices_per_node= says how many it has; nic= is the way to other nodes");
    }
    if (text && s4d_parse_bandwidth(text, &link, err))
        return at(err, "link");
    if (text && !(link > 0)) {
        s4d_fail(err, S4D_EXIT_DATA, "", "expected more than 0, found %s", text);
        return at(err, "link");
    }
    node->layout = (struct s4d_origin){S4D_TAG_ASSUMED, s4d_strdup(line_source)};
    node->rank_to_device = s4d_malloc((size_t)node->devices * sizeof(int));
    node->nic = s4d_calloc((size_t)node->devices, sizeof *node->nic);
    node->link = s4d_calloc((size_t)node->devices * node->devices, sizeof *node->link);
    for (int a = 0; a < node->devices; a++) {
        node->rank_to_device[a] = a;
        node->nic[node->n_nics++].device = a;
        for (int b = a + 1; b < node->devices; b++) {
            struct s4d_node_link *pair = &node->link[node->n_links++];
            *pair = (struct s4d_node_link){.a = a, .b = b, .bricks = 1};
            s4d_quantity_set(&pair->brick_bandwidth_Bps, link, S4D_TAG_ASSUMED, line_source);
        }
    }
    return 0;
}

/* NCCL 2.18.3's constants, src/graph/tuning.cc: hop latencies by protocol [LL, LL128, Simple];
 * bandwidth rows of Ampere, multi-node LL of an AMD host. A machine of one line needs no file, so
 * they stand here too; a test holds them to sim/machines/perlmutter.yaml. */
static void nccl_constants(struct s4d_machine *m)
{
    static const struct {
        const char *section, *key;
        double value[S4D_PROTOCOLS];
    } constants[] = {
        {"library.ring", "base_s", {6.6e-6, 14e-6, 8.4e-6}},
        {"library.ring", "nvlink_s", {0.6e-6, 1.9e-6, 3.4e-6}},
        {"library.ring", "net_s", {2.7e-6, 4.0e-6, 14e-6}},
        {"library.tree", "base_s", {6.8e-6, 14e-6, 0}},
        {"library.tree", "nvlink_s", {0.6e-6, 1.25e-6, 4.0e-6}},
        {"library.tree", "net_s", {5.0e-6, 8.5e-6, 14e-6}},
        {"library", "net_post_s", {2e-6}},
        {"library", "ll_max_in_node_Bps", {87.7e9}},
        {"library", "ll_max_two_nodes_Bps", {22.5e9}},
        {"library", "ll_max_Bps", {19e9}},
        {"library", "ll128_channel_Bps", {20e9}},
        {"library", "tree_channel_in_node_Bps", {24e9}},
        {"library", "tree_channel_two_nodes_Bps", {23.6e9}},
        {"library", "tree_channel_Bps", {17.8e9}},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        const struct s4d_machine_field *f = find_field(constants[i].section, constants[i].key);
        for (int j = 0; j < f->count; j++)
            s4d_quantity_set(s4d_field_quantity(m, f) + j, constants[i].value[j], S4D_TAG_READ,
                             "NVIDIA/nccl v2.18.3-1 src/graph/tuning.cc, Ampere, AMD host");
    }
}

static int make_library(struct s4d_machine *m, struct line *l, struct s4d_error *err)
{
    const char *name = take(l, "library");
    if (name && strcmp(name, "nccl") != 0 && strcmp(name, "ideal") != 0) {
        s4d_fail(err, S4D_EXIT_DATA, "", "expected nccl or ideal, found '%s'", name);
        return at(err, "library");
    }
    snprintf(m->library.name, sizeof m->library.name, "%s", name ? name : "ideal");
    if (strcmp(m->library.name, "nccl") == 0)
        nccl_constants(m);
    return 0;
}

/* What no one took is the topology's. */
static int make_fabric(struct s4d_machine *m, struct line *l, struct s4d_error *err)
{
    struct s4d_fabric *f = &m->fabric;
    const char *topology = take(l, "topology");
    if (!topology)
        return missing(err, "topology");
    snprintf(f->topology, sizeof f->topology, "%s", topology);
    if (take_count(l, "nodes", 0, 1 << 20, &f->nodes, err))
        return -1;
    f->nodes_origin = (struct s4d_origin){S4D_TAG_ASSUMED, s4d_strdup(line_source)};
    f->parameter = s4d_calloc((size_t)l->n + 1, sizeof *f->parameter);
    for (int i = 0; i < l->n; i++) {
        struct s4d_parameter *p = &f->parameter[f->n_parameters];
        if (l->used[i])
            continue;
        if (strlen(l->key[i]) >= sizeof p->key) {
            s4d_fail(err, S4D_EXIT_DATA, "", "unknown key");
            return at(err, l->key[i]);
        }
        snprintf(p->key, sizeof p->key, "%s", l->key[i]);
        if (s4d_parameter_set(p, l->value[i], S4D_TAG_ASSUMED, line_source, err))
            return at(err, l->key[i]);
        f->n_parameters++;
    }
    return 0;
}

int s4d_machine_synthetic(struct s4d_machine *m, const char *line, struct s4d_error *err)
{
    struct line l = {0};
    snprintf(m->name, sizeof m->name, "synthetic");
    snprintf(m->device.name, sizeof m->device.name, "ideal");
    m->description = s4d_strdup("written in one line");
    int rc = cut(&l, line, err) || take_items(m, &l, err) || make_node(m, &l, err) ||
             make_library(m, &l, err) || make_fabric(m, &l, err);
    free(l.text);
    return rc ? -1 : 0;
}
