/* SPDX-License-Identifier: Apache-2.0 */
/* Times single ops on a device: the kernels of a program, and collectives of any size.
 *
 * A sample is the time of one op: of several in a row where one is too short to time, and between
 * two marks on its stream. First the op runs once unobserved. From op to op the operands move
 * through as much memory as the program's arena has, so that caches hold of them what they would in
 * an iteration. */
#ifndef S4D_REAL_PROBE_H
#define S4D_REAL_PROBE_H

#include "real/device.h"
#include "real/peers.h"
#include "real/probed.h"

/* Beyond so much memory, no cache holds anything of what was used before: ten times the H100's 50
 * MB (NVIDIA's white paper), and above the last level of most processors (assumed). */
#define S4D_PROBE_REACH (512 << 20)
/* Assumed: copies of a program are smaller, and a node has that for each of its ranks. */
#define S4D_PROBE_PINNED (64 << 20)

/* What commands ask for is assumed: samples that last many times what a clock tells apart, and all
 * of a program's ops within minutes. */
struct s4d_probe_options {
    int samples;        /* of each op, at most; never less than 3 */
    double sample_s;    /* the least a sample should last */
    double op_s;        /* the most all samples of an op should last */
    int attempts;       /* while the best is too noisy */
    int64_t vocabulary; /* token numbers stay below */
};

struct s4d_probe {
    struct s4d_device *device;
    const struct s4d_peers *peers;
    struct s4d_probe_options options;
    const struct s4d_op *ops; /* of the device's program, where its ops are timed, for messages */
    struct s4d_probe_pool {
        unsigned char *memory, *contents; /* on the device; what it is filled with before an op */
        int64_t bytes, cursor, used;      /* used: what was given to ops since it was filled */
    } pool[3];                     /* of 32- and 64-bit floats, of 16-bit floats, of integers */
    unsigned char *zeros, *pinned; /* pinned: of the host, the other end of copies */
    int64_t pinned_bytes;
    double *samples_s;
    double own_s; /* of the last s4d_probe_op: this rank's least median; NAN: it did not measure */
};

/* Pools of pool_bytes each, and as much pinned memory, but S4D_PROBE_PINNED at most. Collective. 0,
 * or -1 (exit 69). */
int s4d_probe_open(struct s4d_probe *p, struct s4d_device *device, const struct s4d_peers *peers,
                   const struct s4d_probe_options *options, int64_t pool_bytes,
                   struct s4d_error *err);
void s4d_probe_close(struct s4d_probe *p); /* before the device */

/* Bytes of the pool that an op's operands need. */
int64_t s4d_probe_bytes(const struct s4d_program *program, const struct s4d_op *op);
/* Keeps the better of two measurements of the same; best->t.n is 0 where there is none yet. */
void s4d_probed_keep(struct s4d_probed *best, const struct s4d_probed *other);
/* A kernel or copy of a program. Collective: peers->active ranks of every node run it, each by
 * itself. */
int s4d_probe_op(struct s4d_probe *p, const struct s4d_program *program, const struct s4d_op *op,
                 struct s4d_probed *result, struct s4d_error *err);

/* A collective in all groups of a stream of the device's program at once: bytes as nccl-tests
 * counts them, of fp32 numbers that sum exactly in any order. The time of a sample is that of the
 * slowest rank. The pool holds twice the bytes. */
int s4d_probe_collective(struct s4d_probe *p, const struct s4d_grid *grid, enum s4d_op_kind kind,
                         enum s4d_stream stream, int64_t bytes, struct s4d_probed *result,
                         struct s4d_error *err);
/* The part of its rate that a matrix product keeps while a collective of `bytes` is under way, by
 * all ranks: (T_product + T_collective - T_both) / T_collective, from 0.01 to 1. */
int s4d_probe_beside(struct s4d_probe *p, const struct s4d_grid *grid, enum s4d_stream stream,
                     int64_t bytes, struct s4d_probed *result, struct s4d_error *err);

#endif
