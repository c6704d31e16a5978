/* SPDX-License-Identifier: Apache-2.0 */
/* How far a device's streams are, for another thread to read. */
#ifndef S4D_REAL_POSITION_H
#define S4D_REAL_POSITION_H

#include <stdatomic.h>
#include <stdint.h>

#include "schedule/program.h"

struct s4d_position {
    const struct s4d_program *program;
    int rank;
    _Atomic int64_t done[S4D_STREAMS];
    /* Index of the op that each stream runs or waits with, -1: none; and its iteration. */
    _Atomic int at[S4D_STREAMS], iteration[S4D_STREAMS];
};

void s4d_position_init(struct s4d_position *p, const struct s4d_program *program, int rank);
/* The stream's oldest op that has not completed; -1: none. */
void s4d_position_at(struct s4d_position *p, int stream, int index, int iteration);
int64_t s4d_position_completed(const struct s4d_position *p); /* ops, by all streams */
/* An op in words, of place `index` in the program's list: "all-reduce mlp.down (op 47, stream x,
 * forward, layer 1), iteration 3". */
void s4d_position_op(const struct s4d_program *program, const struct s4d_op *op, int index,
                     int iteration, char *text, int size);
/* The other members of a rank's group: "ranks 0, 2, 3"; the first eight and how many more. */
void s4d_position_ranks(const struct s4d_grid *grid, int rank, s4d_axes axes, char *text, int size);
/* The oldest op of all, with its group: "all-reduce mlp.down (op 47, stream x, forward, layer 1),
 * iteration 3 with rank 1". */
void s4d_position_describe(const struct s4d_position *p, char *text, int size);

#endif
