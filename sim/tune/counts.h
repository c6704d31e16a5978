/* SPDX-License-Identifier: Apache-2.0 */
/* What a program of any length computes and moves, read off two short ones.
 *
 * On a part x, y of a grid every layer's ops are alike, and every count of an op (sides of a
 * product, elements of a collective, bytes of a kernel) is c0 + c1 b in the sequences b of a
 * micro-batch. So the program of one layer, two micro-batches, z = 2 and data = 2, built with b = 1
 * and with b = 2, holds the counts of every b; those of z-sharded weights follow from the elements
 * of their blocks. */
#ifndef S4D_SIM_TUNE_COUNTS_H
#define S4D_SIM_TUNE_COUNTS_H

#include "schedule/program.h"

struct s4d_counts {
    struct s4d_program one, two; /* b = 1, b = 2: the same ops, storages and parameters */
};

/* grid: its x, y and rank order are taken. 0 (free with s4d_counts_free), or -1: they do not divide
 * the model (64). */
int s4d_counts_create(struct s4d_counts *c, const struct s4d_model *model,
                      const struct s4d_grid *grid, const struct s4d_options *options,
                      struct s4d_error *err);
void s4d_counts_free(struct s4d_counts *c);

/* Op i with the counts of b sequences. Sharded operands are those of z = 2, and an optimizer's of
 * one layer. */
struct s4d_op s4d_counts_op(const struct s4d_counts *c, int i, int b);

/* Elements of a matrix' shard at this z, padding included; of a vector its own. */
int64_t s4d_shard_elements(const struct s4d_counts *c, const struct s4d_param *q, int z);
/* Sum over a model of so many layers: sharded, or replicated over z. */
int64_t s4d_flat_elements(const struct s4d_counts *c, bool sharded, int layers, int z);
/* The parameter that a gather, or a reduce-scatter, over z moves: an index, never -1. */
int s4d_collective_param(const struct s4d_counts *c, const struct s4d_op *op);

#endif
