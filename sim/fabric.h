/* SPDX-License-Identifier: Apache-2.0 */
/* Fabrics: what lies between the NICs of different nodes. One file in sim/fabric/ and one row here
 * each.
 *
 * Every NIC is a leaf: NIC k of node n is nic n * n_nics + k. The cluster owns each NIC's own two
 * links (out and in); a fabric adds the links behind them and says which of them a way crosses. */
#ifndef S4D_SIM_FABRIC_H
#define S4D_SIM_FABRIC_H

#include "sim/cluster.h"

/* A bandwidth (its key ends in _Bps), a whole number, with `real` any number, with `choices` a
 * word.
 */
struct s4d_fabric_parameter {
    const char *key; /* as in the machine file; the suffix is the unit (support/machine.h) */
    const char *summary;
    double min, max; /* closed */
    bool real;
    const char *const *choices; /* end with NULL; the value is the index of one */
    bool optional;              /* then `missing` is its value where the machine has none */
    double missing;             /* INFINITY: a value found from others, as summary says */
    const char *only_with;      /* another, optional, key: it has an effect only where that one's */
    double only_value;          /* value is this; NULL: always */
};

#define S4D_REQUIRED(k, text, least, most)                                                         \
    {                                                                                              \
        .key = k, .summary = text, .min = least, .max = most                                       \
    }
#define S4D_OPTIONAL(k, text, least, most, value)                                                  \
    {                                                                                              \
        .key = k, .summary = text, .min = least, .max = most, .optional = true, .missing = value   \
    }
/* A ratio: any number. */
#define S4D_RATIO(k, text, least, most, value)                                                     \
    {                                                                                              \
        .key = k, .summary = text, .min = least, .max = most, .real = true, .optional = true,      \
        .missing = value                                                                           \
    }
/* One of several words; without it, the first. */
#define S4D_WORD(k, text, words)                                                                   \
    {                                                                                              \
        .key = k, .summary = text, .choices = words, .optional = true                              \
    }

enum { S4D_FABRIC_PARAMETERS = 9 };
struct s4d_fabric_kind {
    const char *name, *summary;
    const char *description; /* what it models and leaves out, with its source; may be NULL */
    const char *example; /* its keys in a one-line machine, beside nodes, nic, latency, peak; NULL:
                            there is none */
    struct s4d_fabric_parameter
        parameter[S4D_FABRIC_PARAMETERS]; /* ends with a row without a key */
    /* Nodes its parameters make room for; at least the machine's. NULL: any number. */
    double (*room)(const struct s4d_machine *m);
    /* Adds links for the cluster's n_nodes nodes and sets c->fabric_state. */
    int (*create)(struct s4d_cluster *c, struct s4d_error *err);
    void (*destroy)(struct s4d_cluster *c);
    /* Appends the links from NIC a to NIC b of another node, without the NICs' own. */
    void (*route)(const struct s4d_cluster *c, int a, int b, struct s4d_path *path);
    /* Whether NICs of one number are nearer to each other than to others, so that a library leaves
     * a node through a NIC and enters the next through that of the same number. */
    bool rails;
    /* NULL: every way between nodes takes the machine's fabric.latency_s. Else: that of this one.
     */
    double (*latency_s)(const struct s4d_cluster *c, int a, int b);
    /* NULL: nodes are called n0, n1, ... Else: borrowed name of a node. */
    const char *(*node_name)(const struct s4d_cluster *c, int node);
    /* Name of one of its links, "group3.out"; caller frees. */
    char *(*link_name)(const struct s4d_cluster *c, int link);
};

extern const struct s4d_fabric_kind s4d_fabric_single_switch, s4d_fabric_fat_tree,
    s4d_fabric_rail_optimised, s4d_fabric_torus, s4d_fabric_ring, s4d_fabric_dragonfly,
    s4d_fabric_simgrid;
extern const struct s4d_fabric_kind *const s4d_fabrics[]; /* ends with NULL */

const struct s4d_fabric_kind *s4d_fabric_find(const char *name); /* NULL: unknown */

/* A parameter of the machine's topology, or what stands for a missing one; of a word its index
 * among the choices. s4d_fabric_check has passed. */
double s4d_fabric_value(const struct s4d_machine *m, const char *key);

/* Whether the machine's topology is known and its parameters are those of the topology: none
 * missing, none unknown, all in range, room for its nodes. 0, or -1 (exit 65, file:line; 64 where
 * it comes from --set). */
int s4d_fabric_check(const struct s4d_machine *m, struct s4d_error *err);

#endif
