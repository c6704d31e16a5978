/* SPDX-License-Identifier: Apache-2.0 */
/* A machine made concrete: devices on nodes, links with capacities, and the links between two
 * devices. */
#ifndef S4D_SIM_CLUSTER_H
#define S4D_SIM_CLUSTER_H

#include <stdint.h>

#include "sim/rates.h"
#include "support/machine.h" /* for: struct s4d_machine */

struct s4d_link {
    double capacity_Bps; /* 0: dead, no way crosses it */
    const char
        *kind; /* "nvlink", "nic-out", "group-out": for printing, and the colour links start with */
};

/* A node with dead links: those have no bricks, dead NICs hang on device -1. */
struct s4d_altered {
    struct s4d_node node; /* its own link and nic arrays, all else borrowed */
    struct s4d_node_routes *routes;
};

/* The first way that found nothing but dead links. */
struct s4d_fault {
    bool found;
    int a, b, link; /* devices, a dead link of the way */
};

struct s4d_cluster {
    const struct s4d_machine *machine;
    int n_nodes, n_devices; /* devices_per_node * n_nodes; device d is local device d %
                               devices_per_node of node d / devices_per_node */
    struct s4d_link *links; /* directed */
    int n_links, cap_links;
    double *device_speed;   /* 1 each; sim/differences.h changes it */
    struct s4d_rates rates; /* 1 each; the same */
    struct s4d_node_routes *node_state;
    const int *node_of; /* the node of the job's first, second, ... node's worth of ranks; NULL:
                           nodes in order. Owned, as is what follows */
    int n_used;         /* entries of node_of */
    struct s4d_altered *altered; /* nodes with dead links of their own (sim/differences.h) */
    int n_altered;
    int *altered_of;                      /* by node, -1: as all others; NULL: no node is altered */
    struct s4d_fault *fault;              /* NULL: no link is dead */
    struct s4d_rings_cache *rings;        /* found before: sim/collective/channels.h */
    struct s4d_feeders *feeders;          /* NICs behind links of the fabric: sim/spare.h */
    const struct s4d_fabric_kind *fabric; /* sim/fabric.h */
    void *fabric_state;
};

/* The first n_nodes nodes of the machine. 0, or -1 (exit 65): it has fewer, or its node or fabric
 * is not whole (a device that no link reaches, a missing fabric parameter). */
int s4d_cluster_create(struct s4d_cluster *c, const struct s4d_machine *machine, int n_nodes,
                       struct s4d_error *err);
void s4d_cluster_destroy(struct s4d_cluster *c);
/* Whether so many links more may be added. 0, or -1 (exit 65). */
int s4d_cluster_room(const struct s4d_cluster *c, int64_t links, struct s4d_error *err);
/* Adds a directed link; for fabrics (sim/fabric.h). Returns its index. */
int s4d_cluster_add_link(struct s4d_cluster *c, double capacity_Bps, const char *kind);
bool s4d_link_is_dead(const struct s4d_cluster *c, int link);
char *s4d_link_name(const struct s4d_cluster *c, int link); /* "n12.gpu0->gpu3", caller frees */

/* The nodes of the job, `n` different ones, in the order of its ranks; takes the array over. */
void s4d_cluster_place(struct s4d_cluster *c, int *nodes, int n);
/* After capacities were set to 0: finds other ways inside the nodes of the job that lost links. 0,
 * or -1 (exit 65): a device or all NICs of one of them are cut off. */
int s4d_cluster_settle(struct s4d_cluster *c, struct s4d_error *err);
/* 0, or -1 (exit 65): some way asked for since s4d_cluster_settle has no living link. */
int s4d_cluster_check_ways(const struct s4d_cluster *c, struct s4d_error *err);
const struct s4d_node *s4d_cluster_node(const struct s4d_cluster *c, int node);
int s4d_links_per_node(const struct s4d_cluster *c);
char *s4d_node_name(const struct s4d_cluster *c, int node);     /* "n12", caller frees */
char *s4d_device_name(const struct s4d_cluster *c, int device); /* "n12.gpu3", caller frees */

/* Weighted links, appended to. */
struct s4d_path {
    int *link, *weight;
    int n, cap;
};
void s4d_path_add(struct s4d_path *path, int link, int weight);
void s4d_path_merge(struct s4d_path *path); /* ascending links, each once, weights added */
void s4d_path_free(struct s4d_path *path);

/* The links from device a to device b (different devices), appended to path; latency of the way in
 * *latency_s. Inside a node the node's links; between nodes a's NIC, the fabric, b's NIC. */
void s4d_cluster_route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path,
                       double *latency_s);
/* The same between two nodes when the way must leave through the NIC of local device `out` of a's
 * node and enter through that of `in` of b's (NIC choice of a channel). Within one node it is the
 * plain route. */
void s4d_cluster_route_via(const struct s4d_cluster *c, int a, int out, int b, int in,
                           struct s4d_path *path, double *latency_s);

/* The NIC that device a uses: its own, else the nearest; its number in a's node. */
int s4d_cluster_nic(const struct s4d_cluster *c, int a);
/* The first local device of a whole node that uses the NIC with the number of a's. */
int s4d_device_on_rail(const struct s4d_cluster *c, int a);
/* The way inside node n between two of its devices or switches, appended to path; nothing
 * when they are the same. */
void s4d_cluster_route_in_node(const struct s4d_cluster *c, int n, int from, int to,
                               struct s4d_path *path);

/* Rank to device by the placement: node-major, inside a node by the machine's rank_to_device. */
int s4d_device_of_rank(const struct s4d_cluster *c, int rank);

#endif
