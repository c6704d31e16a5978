/* SPDX-License-Identifier: Apache-2.0 */
#include "support/machine_fields.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/units.h"

const char *const s4d_tag_names[S4D_TAGS] = {"read",     "secondary", "derived",
                                             "measured", "fitted",    "assumed"};
const char *const s4d_protocol_names[S4D_PROTOCOLS] = {"ll", "ll128", "simple"};

#define ROW(section, path, key, count, range)                                                      \
    {                                                                                              \
        section, #key, offsetof(struct s4d_machine, path.key), count, range, NULL                  \
    }
#define DEVICE(key, range) ROW("device", device, key, 1, range)
#define NODE(key, range)   ROW("node", node, key, 1, range)
#define LIBRARY(key)       ROW("library", library, key, 1, S4D_POSITIVE)
#define NVLS(key, range)   ROW("library.nvls", library.nvls, key, 1, range)
#define LATENCY(pattern, key)                                                                      \
    ROW("library." #pattern, library.pattern, key, S4D_PROTOCOLS, S4D_NOT_NEGATIVE)

const struct s4d_machine_field s4d_machine_fields[] = {
    DEVICE(peak_flops_per_s, S4D_POSITIVE),
    DEVICE(peak_measured_flops_per_s, S4D_POSITIVE),
    DEVICE(memory_bytes, S4D_UNLIMITED_TOO),
    DEVICE(memory_reserve_bytes, S4D_NOT_NEGATIVE),
    DEVICE(memory_bandwidth_Bps, S4D_UNLIMITED_TOO),
    DEVICE(launch_s, S4D_NOT_NEGATIVE),
    DEVICE(gemm_flops_per_s, S4D_POSITIVE),
    DEVICE(gemm_output_Bps, S4D_UNLIMITED_TOO),
    DEVICE(rate_beside_in_node, S4D_FRACTION),
    DEVICE(rate_beside_across_nodes, S4D_FRACTION),
    NODE(nic_bandwidth_Bps, S4D_POSITIVE),
    NODE(host_bandwidth_Bps, S4D_UNLIMITED_TOO),
    NODE(latency_s, S4D_NOT_NEGATIVE),
    {"node", "compute_units", offsetof(struct s4d_machine, node.compute_units), 1,
     S4D_UNLIMITED_TOO, "not given: every device computes by itself"},
    ROW("fabric", fabric, latency_s, 1, S4D_NOT_NEGATIVE),
    LATENCY(ring, base_s),
    LATENCY(ring, nvlink_s),
    LATENCY(ring, net_s),
    LATENCY(tree, base_s),
    LATENCY(tree, nvlink_s),
    LATENCY(tree, net_s),
    NVLS(efficiency, S4D_FRACTION),
    NVLS(hop_s, S4D_NOT_NEGATIVE),
    NVLS(net_s, S4D_NOT_NEGATIVE),
    NVLS(least_members, S4D_POSITIVE),
    NVLS(channels, S4D_POSITIVE),
    LIBRARY(net_post_s),
    {"library", "net_simple_s", offsetof(struct s4d_machine, library.net_simple_s), 1,
     S4D_UNLIMITED_TOO, "not given: a hop takes what the library's own constant says"},
    {"library", "ll128_nodes", offsetof(struct s4d_machine, library.ll128_nodes), 1,
     S4D_UNLIMITED_TOO, "not given: LL128 between nodes as inside them"},
    LIBRARY(ll_max_in_node_Bps),
    LIBRARY(ll_max_two_nodes_Bps),
    LIBRARY(ll_max_Bps),
    LIBRARY(ll128_channel_Bps),
    LIBRARY(tree_channel_in_node_Bps),
    LIBRARY(tree_channel_two_nodes_Bps),
    LIBRARY(tree_channel_Bps),
    {0},
};

struct s4d_quantity *s4d_field_quantity(const struct s4d_machine *m,
                                        const struct s4d_machine_field *field)
{
    return (struct s4d_quantity *)((char *)m + field->offset);
}

bool s4d_library_has_constants(const struct s4d_library *l)
{
    return strcmp(l->name, "nccl") == 0 || strcmp(l->name, "rccl") == 0;
}

bool s4d_field_used(const struct s4d_machine *m, const struct s4d_machine_field *field)
{
    if (strcmp(field->section, "library.nvls") == 0)
        return m->library.nvls.present;
    return strncmp(field->section, "library", 7) != 0 || s4d_library_has_constants(&m->library);
}

bool s4d_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), e = strlen(end);
    return n >= e && strcmp(text + n - e, end) == 0;
}

bool s4d_key_has_no_unit(const char *key)
{
    return !s4d_ends_with(key, "_Bps") && !s4d_ends_with(key, "_bytes") &&
           !s4d_ends_with(key, "_s");
}

int s4d_parse_quantity(const char *key, const char *text, double *value, struct s4d_error *err)
{
    if (strcmp(text, "unlimited") == 0) {
        *value = INFINITY;
        return 0;
    }
    if (s4d_ends_with(key, "_Bps"))
        return s4d_parse_bandwidth(text, value, err);
    if (s4d_ends_with(key, "flops_per_s"))
        return s4d_parse_flops(text, value, err);
    if (s4d_ends_with(key, "_bytes"))
        return s4d_parse_bytes(text, value, err);
    if (s4d_ends_with(key, "_s"))
        return s4d_parse_time(text, value, err);
    return s4d_parse_number(text, 0, 1e18, value, err);
}

int s4d_field_check(const struct s4d_machine_field *field, double value, struct s4d_error *err)
{
    if (isinf(value) && field->range != S4D_UNLIMITED_TOO)
        return s4d_fail(err, S4D_EXIT_DATA, "", "%s cannot be unlimited", field->key);
    if (field->range == S4D_FRACTION && !(value > 0 && value <= 1))
        return s4d_fail(err, S4D_EXIT_DATA, "", "expected a part above 0 and at most 1, found %g",
                        value);
    if (field->range != S4D_NOT_NEGATIVE && !(value > 0))
        return s4d_fail(err, S4D_EXIT_DATA, "", "expected more than 0, found %g", value);
    return 0;
}

void s4d_quantity_set(struct s4d_quantity *q, double value, enum s4d_tag tag, const char *source)
{
    char *copy = s4d_strdup(source); /* before the free: source may be q's own */
    free(q->source);
    *q = (struct s4d_quantity){value, tag, copy};
}

bool s4d_is_word(const char *text)
{
    return isalpha((unsigned char)text[0]) && strcmp(text, "unlimited") != 0;
}

int s4d_parameter_set(struct s4d_parameter *p, const char *text, enum s4d_tag tag,
                      const char *source, struct s4d_error *err)
{
    double value = NAN;
    p->word[0] = '\0';
    if (s4d_is_word(text)) {
        if (strlen(text) >= sizeof p->word)
            return s4d_fail(err, S4D_EXIT_DATA, "", "expected at most %zu letters, found %zu",
                            sizeof p->word - 1, strlen(text));
        snprintf(p->word, sizeof p->word, "%s", text);
    } else if (s4d_parse_quantity(p->key, text, &value, err)) {
        return -1;
    }
    s4d_quantity_set(&p->value, value, tag, source);
    return 0;
}

double s4d_curve_value(const struct s4d_curve *curve, double x)
{
    if (curve->n == 0)
        return 1;
    if (x <= curve->x[0])
        return curve->y[0];
    for (int i = 1; i < curve->n; i++) {
        if (x <= curve->x[i]) {
            double part = log2(x / curve->x[i - 1]) / log2(curve->x[i] / curve->x[i - 1]);
            return curve->y[i - 1] + part * (curve->y[i] - curve->y[i - 1]);
        }
    }
    return curve->y[curve->n - 1];
}

double s4d_parameter_value(const struct s4d_machine *m, const char *key, double missing)
{
    for (int i = 0; i < m->fabric.n_parameters; i++) {
        if (strcmp(m->fabric.parameter[i].key, key) == 0)
            return m->fabric.parameter[i].value.value;
    }
    return missing;
}
