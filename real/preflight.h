/* SPDX-License-Identifier: Apache-2.0 */
/* A health check of all devices before a run: how fast each multiplies and copies, how fast the
 * links between them sum, whether what they compute is right; and which of them fall behind their
 * peers, or behind what a machine file says.
 *
 * It takes a few seconds. A device is slow only if it is slow in every attempt: what else a machine
 * does never makes it faster. */
#ifndef S4D_REAL_PREFLIGHT_H
#define S4D_REAL_PREFLIGHT_H

#include "real/device.h"
#include "real/peers.h"

enum s4d_preflight_kind {
    S4D_PREFLIGHT_ALONE, /* a matrix product, one rank of a node at a time; FLOP/s */
    S4D_PREFLIGHT_GEMM,  /* the same by all ranks at once */
    /* The next three by all ranks at once; bytes/s. */
    S4D_PREFLIGHT_MEMORY,      /* a copy inside the device, bytes read and written */
    S4D_PREFLIGHT_TO_DEVICE,   /* from pinned memory of the host */
    S4D_PREFLIGHT_FROM_DEVICE, /* to it */
    /* All-reduces, nccl-tests' bus bandwidth: of each node's ranks; of those ranks that have the
     * same number in their nodes; of all ranks. */
    S4D_PREFLIGHT_NODE,
    S4D_PREFLIGHT_RAIL,
    S4D_PREFLIGHT_WORLD,
    S4D_PREFLIGHT_KINDS
};
struct s4d_preflight_info {
    const char *name, *what; /* "gemm-alone"; a line for people */
    bool flops;              /* its rate is in FLOP/s, else in bytes/s */
    enum s4d_stream stream;  /* whose groups it sums over; S4D_STREAMS: it does not */
};
extern const struct s4d_preflight_info s4d_preflight_kinds[S4D_PREFLIGHT_KINDS];

/* What one check found. */
struct s4d_preflight_check {
    int op;          /* in ops */
    int64_t size;    /* rows of a square product, or bytes; 0: the check was not made */
    int members;     /* of a group; 1 where there are none */
    double *rate;    /* of every rank; in a group that of its slowest */
    double *wrong;   /* of every rank: elements that were looked at and are not as they must be */
    double median;   /* of the rates */
    double expected; /* by the machine file; 0: not known */
};

struct s4d_preflight_options {
    int attempts;                          /* while something is slow: at most so many */
    double slower;                         /* slow is below (1 - slower) median; */
    double tolerance[S4D_PREFLIGHT_KINDS]; /* and below (1 - tolerance) expected */
    /* The machine file's rate of a check with known size; 0 where it has none. NULL: no file. */
    double (*expected)(void *self, enum s4d_preflight_kind kind, int64_t size);
    void *self;
};

struct s4d_preflight {
    struct s4d_preflight_options options;
    struct s4d_program program; /* its ops are the sums: the device's grid and streams */
    struct s4d_op ops[S4D_PREFLIGHT_KINDS]; /* and beyond them, for messages, the other checks */
    int ranks_per_node;
    struct s4d_preflight_check check[S4D_PREFLIGHT_KINDS];
};

/* The program to open the device with. ranks_per_node: ranks n*i .. n*i + n-1 share a node; 0: it
 * is not so regular, and only the whole world sums. */
void s4d_preflight_init(struct s4d_preflight *p, int ranks, int ranks_per_node,
                        enum s4d_type precision, const struct s4d_preflight_options *options);
void s4d_preflight_free(struct s4d_preflight *p);

/* Collective; all ranks know all rates then. 0, or -1 (exit 69): a device failed. */
int s4d_preflight_measure(struct s4d_preflight *p, struct s4d_device *device,
                          const struct s4d_peers *peers, struct s4d_error *err);

/* A rank that is slow in a check, or computes wrong values; of a group its first rank. */
struct s4d_preflight_finding {
    enum s4d_preflight_kind kind;
    int rank, members;             /* of its group */
    double rate, median, expected; /* median, expected: 0 where it is not below that limit */
    double wrong;
};
/* The median of every check, and what is wrong in ascending order of checks and ranks: *findings,
 * to be freed. Returns how many. Peers are compared where there is more than one rank, or group. */
int s4d_preflight_judge(struct s4d_preflight *p, struct s4d_preflight_finding **findings);

#endif
