/* SPDX-License-Identifier: Apache-2.0 */
/* A machine as written down: one YAML, or one line. Structure, reader and writer; no model.
 *
 * Every number has a tag that says where it comes from, and a source (or, assumed, the reason). */
#ifndef S4D_SUPPORT_MACHINE_H
#define S4D_SUPPORT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "support/error.h"

enum s4d_tag {
    S4D_TAG_READ,
    S4D_TAG_SECONDARY,
    S4D_TAG_DERIVED,
    S4D_TAG_MEASURED,
    S4D_TAG_FITTED,
    S4D_TAG_ASSUMED,
    S4D_TAGS
};
extern const char *const s4d_tag_names[S4D_TAGS];

struct s4d_quantity {
    double value; /* in the unit of the key's suffix (_Bps, _s, _flops_per_s, _bytes; none: a plain
                     number); INFINITY where the file says "unlimited" */
    enum s4d_tag tag;
    char *source;
};

/* Where the whole numbers of a structure (counts, maps) come from. */
struct s4d_origin {
    enum s4d_tag tag;
    char *source;
};

/* A curve: y by x, ascending x; linear in log2 x, clamped outside. */
struct s4d_curve {
    double *x, *y;
    int n;
    enum s4d_tag tag;
    char *source;
};

/* Attention rate by sequence length for one head size and pass. FLOPs counted 4 s^2 heads head_dim
 * forward, causal half. */
struct s4d_attention_row {
    int head_dim;
    bool causal;
    /* Which pass. A file's `pass: both` (a rate of forward and backward together) becomes two rows
     * with the same rate: the sum of the two times is then the measured one. */
    bool backward;
    struct s4d_curve flops_per_s;
};

/* GEMM rates by shape: D (m x n) = op(A) op(B), sum over k. Another shape takes the mean of the
 * rows of its transposes (of all, where it has none) in log rate, weighted by 1 / d^2 of the
 * distance in log2 (m, n, k). */
struct s4d_gemm_row {
    int m, n, k;
    bool transpose_a, transpose_b; /* as stored, of row-major matrices: "nn", "nt", "tn", "tt" */
    double flops_per_s;
};
struct s4d_gemm_table {
    struct s4d_gemm_row *row;
    int n; /* 0: the 2-term fit holds */
    enum s4d_tag tag;
    char *source;
};

/* Rate of one kind of memory-bound kernel by the bytes it reads and writes. */
struct s4d_kernel_row {
    char kind[32]; /* as `scale4d schedule` names it: "adamw", "activation-forward" */
    struct s4d_curve bandwidth_Bps;
};

/* efficiency(bytes, ranks): measured bus bandwidth as a part of what the links alone would give.
 * Rows with ranks = ranks_per_node are of groups inside a node and serve those alone, the others
 * groups that span nodes. */
struct s4d_efficiency_row {
    int ranks, ranks_per_node;
    double bytes, efficiency;
};
struct s4d_efficiency_table {
    char op[32]; /* "all-gather", "reduce-scatter", "all-reduce" */
    struct s4d_efficiency_row *row;
    int n;
    enum s4d_tag tag;
    char *source;
};

struct s4d_node_link {
    int a, b;   /* local devices or switches; directed both ways */
    int kind;   /* the row of the file's `links` it comes from: links of a kind share a bandwidth */
    int bricks; /* individual links side by side */
    struct s4d_quantity
        brick_bandwidth_Bps; /* each, per direction: what the library gets out of it */
};

/* NCCL's protocols and the two patterns its constants are given for. */
enum s4d_protocol { S4D_LL, S4D_LL128, S4D_SIMPLE, S4D_PROTOCOLS };
struct s4d_nccl_latency {
    struct s4d_quantity base_s[S4D_PROTOCOLS], nvlink_s[S4D_PROTOCOLS], net_s[S4D_PROTOCOLS];
};

/* Sums and copies made by a node's switch (NVLink SHARP). */
struct s4d_nvls {
    bool present;
    struct s4d_quantity efficiency;    /* of what the links give a ring */
    struct s4d_quantity hop_s, net_s;  /* in a node, and between nodes */
    struct s4d_quantity least_members; /* of a node, from which the library uses it */
    struct s4d_quantity channels;      /* side by side */
};

struct s4d_library {
    /* "nccl", "rccl" (the same rules, other constants); or without constants and with one ring
     * channel: "ideal", where the links are all, and "mpi", where the tables say what is got out of
     * them */
    char name[32];
    struct s4d_nccl_latency ring, tree;
    struct s4d_nvls nvls;
    struct s4d_quantity ll_max_in_node_Bps, ll_max_two_nodes_Bps,
        ll_max_Bps;                        /* caps of the LL protocol */
    struct s4d_quantity ll128_channel_Bps; /* per channel */
    /* What a hop between nodes really takes with the Simple protocol, on networks for which the
     * library's constant was not made; the library chooses by its constant. Infinity: the
     * constant. */
    struct s4d_quantity net_simple_s;
    /* On more nodes the library does not use LL128 (NCCL: where NICs are not behind the devices'
     * own PCIe switches). */
    struct s4d_quantity ll128_nodes;
    struct s4d_quantity net_post_s; /* host's cost of posting to the network: the least of a step
                                       inside a node when the group spans nodes */
    struct s4d_quantity tree_channel_in_node_Bps, tree_channel_two_nodes_Bps, tree_channel_Bps;
    struct s4d_efficiency_table *table;
    int n_tables;
};

struct s4d_device {
    char name[64];
    char compute_types[32]; /* element types that the rates are of, "bf16 f16"; "": all */
    struct s4d_quantity peak_flops_per_s;          /* advertised, dense, in the compute type */
    struct s4d_quantity peak_measured_flops_per_s; /* the best GEMM */
    struct s4d_quantity memory_bytes;              /* infinity: unlimited */
    struct s4d_quantity memory_reserve_bytes; /* BLAS workspace, communicator buffers, context */
    struct s4d_quantity memory_bandwidth_Bps; /* infinity: memory-bound kernels are free */
    struct s4d_quantity launch_s;             /* before each kernel */
    struct s4d_quantity gemm_flops_per_s;     /* saturated, all devices of the node busy */
    struct s4d_quantity gemm_output_Bps;      /* 2-term fit: the rate at which the output tile is
                                                 written; infinity: none */
    struct s4d_curve memory_efficiency; /* part of the bandwidth by bytes of the kernel; n = 0: 1 */
    struct s4d_attention_row *attention; /* none: attention runs at the GEMM rate */
    int n_attention;
    struct s4d_gemm_table gemm;    /* optional */
    struct s4d_kernel_row *kernel; /* optional; kinds without a row: memory_bandwidth */
    int n_kernels;
    struct s4d_quantity rate_beside_in_node,
        rate_beside_across_nodes; /* part of its rate computing keeps beside a collective */
};

struct s4d_nic {
    int device; /* the local device or switch it hangs on (at most one a device); others reach it
                   over that one */
};

struct s4d_node {
    int devices;
    int switches; /* what only passes on (NVSwitch, PCIe bridge, processor): numbered after the
                     devices as ends of links */
    struct s4d_node_link *link;
    int n_links;
    struct s4d_nic *nic;
    int n_nics;
    struct s4d_quantity nic_bandwidth_Bps;  /* per direction */
    struct s4d_quantity host_bandwidth_Bps; /* device to host memory, per direction */
    struct s4d_quantity latency_s;          /* between two devices of a node */
    /* Devices of a node that can compute at the file's rates at the same time. With more in use
     * (processes that share cores) all compute at units / devices of them, whatever they compute.
     * Infinity, the default: as many as there are. */
    struct s4d_quantity compute_units;
    int *rank_to_device;      /* devices long */
    struct s4d_origin layout; /* of devices, links, nics and rank_to_device */
};

/* Fabric parameters are a list of named numbers and words; each topology says which it needs
 * (sim/fabric.h). */
struct s4d_parameter {
    char key[48];
    char word[32];             /* "adaptive"; "": a number */
    struct s4d_quantity value; /* NAN for a word */
    int line;                  /* in the machine's file, 0: none, S4D_LINE_SET: --set */
};
enum { S4D_LINE_SET = -1 };
struct s4d_fabric {
    char topology[32];
    int nodes;
    struct s4d_origin nodes_origin;
    struct s4d_quantity latency_s; /* end to end between two devices of different nodes */
    struct s4d_parameter *parameter;
    int n_parameters;
    int line; /* of the section in the machine's file, 0: none */
    char *file,
        *hosts; /* of a network that a file of its own describes (sim/platform.h); else NULL */
};

struct s4d_machine {
    char name[64];
    char *description;
    char *file;    /* as opened; the one line itself for a synthetic machine */
    char hash[17]; /* of the contents: the file's bytes or the one line, then every override */
    struct s4d_device device;
    struct s4d_node node;
    struct s4d_fabric fabric;
    struct s4d_library library;
};

/* NAME (of a file in the machines folder), a path that ends in .yaml, or "synthetic:key=value,...".
 * set: "key=value" overrides, n_set of them (keys as s4d_machine_print writes them; such a value
 * has tag assumed and source "--set"). 0, or -1: unknown machine 65, bad key or value with
 * file:line, a bad override 64. An override "fabric.topology=NAME" comes first, and drops the
 * parameters of the topology before; other "fabric." keys that the machine lacks are added. Which
 * parameters the fabric needs is checked by s4d_fabric_check (sim/fabric.h). */
int s4d_machine_load(struct s4d_machine *m, const char *name, const char *const *set, int n_set,
                     struct s4d_error *err);
/* The same from n bytes of YAML; file is for messages and the machine's name. */
int s4d_machine_parse(struct s4d_machine *m, const char *file, const char *text, size_t n,
                      const char *const *set, int n_set, struct s4d_error *err);
/* One override more, without a new hash. 0, or -1 (exit 64). */
int s4d_machine_override(struct s4d_machine *m, const char *setting, struct s4d_error *err);
void s4d_machine_free(struct s4d_machine *m);
/* Links, NICs and map are freed and there are none; quantities stay. */
void s4d_node_clear(struct s4d_node *node);
void s4d_parameters_clear(struct s4d_fabric *fabric);

/* Every resolved value with its tag and source, one a line. */
void s4d_machine_print(const struct s4d_machine *m, FILE *out);
/* The machine as a file that s4d_machine_load accepts and that says the same (to 9 digits), but for
 * the network of a file of its own. */
void s4d_machine_write(const struct s4d_machine *m, FILE *out);
/* Calls visit for every quantity, curve and table: key, tag, source, value (NAN for curves and
 * tables). */
void s4d_machine_visit(const struct s4d_machine *m,
                       void (*visit)(void *context, const char *key, enum s4d_tag tag,
                                     const char *source, double value),
                       void *context);
/* Multiplies the numbers of an entry that s4d_machine_visit shows, all of a curve or table; parts
 * stay at most 1, counts of the fabric whole and at least 1. False: nothing changed (unlimited, 0,
 * a word, at its limit, fabric.nodes, or no such entry). */
bool s4d_machine_scale(struct s4d_machine *m, const char *key, double factor);
double s4d_parameter_value(const struct s4d_machine *m, const char *key, double missing);
/* y at x: linear in log2 x between the points, clamped outside; 1 for an empty curve. */
double s4d_curve_value(const struct s4d_curve *curve, double x);

/* Of the machines folder: SCALE4D_MACHINES in the environment, or sim/machines of the build.
 * Sorted; returns how many; caller frees with s4d_names_free (support/file.h). */
int s4d_machine_names(char ***names);

#endif
