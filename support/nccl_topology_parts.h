/* SPDX-License-Identifier: Apache-2.0 */
/* What an NCCL topology file says, between its reader and the node that is made of it. Private to
 * support/nccl_topology*.c. */
#ifndef S4D_SUPPORT_NCCL_TOPOLOGY_PARTS_H
#define S4D_SUPPORT_NCCL_TOPOLOGY_PARTS_H

#include <expat.h>

#include "support/machine.h"

enum {
    MOST_CPUS = 32,
    MOST_GPUS = 64,
    MOST_VERTICES = 512,
    MOST_NVLINKS = 4096,
    MOST_PORTS = 256,
    DEEPEST = 32
};

/* LINK: of a kind that is not known; OTHER: what joins nothing. */
enum part { SYSTEM, CPU, PCI, GPU, NVLINK, NIC, NET, LINK, OTHER };
/* A processor, PCIe device or bridge; a GPU's own becomes the GPU. */
struct vertex {
    char busid[32];
    int parent;     /* -1: of a processor */
    int number;     /* in the node: a device, or a switch */
    int gpu;        /* index into gpus, -1: none */
    double up_Bps;  /* to the parent */
    double cpu_Bps; /* of a processor: to the others */
};
struct gpu {
    int vertex, dev, sm, rank, line;
};
struct nvlink {
    int gpu, count, line;
    char target[32], tclass[16];
};
struct port {
    int vertex;
    double Bps;
};

struct s4d_nccl_reading {
    const char *file;
    XML_Parser parser;
    struct s4d_error *err;
    bool failed;
    enum part open[DEEPEST];
    int depth, at[DEEPEST]; /* the vertex that each open element is in, -1: none */
    struct vertex vertex[MOST_VERTICES];
    struct gpu gpu[MOST_GPUS];
    struct nvlink nvlink[MOST_NVLINKS];
    struct port port[MOST_PORTS];
    int n_vertices, n_cpus, n_gpus, n_nvlinks, n_ports;
};

/* The first failure stays; parsing stops. */
void s4d_nccl_fail(struct s4d_nccl_reading *r, int line, const char *text);
/* Puts what was read into the machine's node. 0, or -1 (exit 65). */
int s4d_nccl_build(struct s4d_machine *m, struct s4d_nccl_reading *r);

#endif
