/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured of a machine, and the machine file made of it. */
#ifndef S4D_REAL_CALIBRATION_H
#define S4D_REAL_CALIBRATION_H

#include <stdio.h>

#include "real/probed.h"
#include "schedule/program.h"

struct s4d_machine; /* support/machine.h */
struct s4d_probe;   /* real/probe.h */

/* An op of a program that differs from the others in what its time depends on. */
struct s4d_calibrated_op {
    enum s4d_op_kind kind;
    union s4d_constants c; /* of a gemm, an attention */
    int64_t bytes;         /* of a kernel: read and written; of a copy: of the tensor */
    int passes;            /* in which it was measured; the best of them counts */
    struct s4d_probed probed;
};

struct s4d_calibrated_collective {
    enum s4d_op_kind kind;
    int ranks; /* of each group; all groups of that size of neighbours at once */
    int64_t bytes;
    struct s4d_probed probed;
};

struct s4d_calibration {
    enum s4d_type precision;
    bool tf32;         /* products of f32 are rounded so */
    int ranks, active; /* of this machine; of them compute at a time */
    int node_ranks;    /* of one node; 0: all ranks */
    struct s4d_calibrated_op *op;
    int n_ops, cap_ops;
    struct s4d_calibrated_collective *collective;
    int n_collectives, cap_collectives;
    struct s4d_probed launch, beside; /* beside: n = 0 where there is one rank */
    double memory_bytes;              /* of the node; */
    double device_bytes;              /* of each device that has its own; 0: it has not */
    const char *device, *source;      /* processor's name; command, date, libraries */
};

/* Whether two ops are the same to their kernel's time: of a gemm shape and transposes, of an
 * attention its constants, of another its kind and bytes. */
bool s4d_calibration_same(const struct s4d_calibrated_op *a, const struct s4d_calibrated_op *b);
/* What a program's op is in these terms. */
struct s4d_calibrated_op s4d_calibration_key(const struct s4d_program *program,
                                             const struct s4d_op *op);
/* The ops of a program whose class is in `classes` (a bit each) and that were not measured in this
 * pass (0, 1, ...: minutes apart, so that a disturbance does not meet an op in all). Collective. 0,
 * or -1 (exit 69). */
int s4d_calibrate_program(struct s4d_calibration *c, struct s4d_probe *probe,
                          const struct s4d_program *program, unsigned classes, int pass,
                          struct s4d_error *err);
/* The shapes of its products that differ from one another, with all four transposes: what the above
 * leaves out. */
int s4d_calibrate_transposes(struct s4d_calibration *c, struct s4d_probe *probe,
                             const struct s4d_program *program, int pass, struct s4d_error *err);
/* Copies of 4 KiB to `largest` bytes each way (op kind copy), and the launch: one of 4 bytes. */
int s4d_calibrate_copies(struct s4d_calibration *c, struct s4d_probe *probe, int64_t largest,
                         struct s4d_error *err);
/* All-reduce, all-gather, reduce-scatter of 4 bytes to `largest` by twos, in the groups that
 * `stream` has on the grid of the device's program; again: the better counts. */
int s4d_calibrate_collectives(struct s4d_calibration *c, struct s4d_probe *probe,
                              const struct s4d_grid *grid, enum s4d_stream stream, int64_t largest,
                              struct s4d_error *err);
void s4d_calibration_free(struct s4d_calibration *c);

/* nccl-tests' bus bandwidth of a collective measured. */
double s4d_calibrated_bus_Bps(const struct s4d_calibrated_collective *c);

/* Nodes of as many devices as they have ranks, links between any two. Needs gemms, kernels and
 * copies, and collectives of more than one rank. 0, or -1 (exit 65): something was not measured. */
int s4d_calibration_machine(const struct s4d_calibration *c, struct s4d_machine *m,
                            struct s4d_error *err);
/* The same, as the machine's file. */
int s4d_calibration_write(const struct s4d_calibration *c, FILE *out, struct s4d_error *err);

#endif
