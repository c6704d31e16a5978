/* SPDX-License-Identifier: Apache-2.0 */
/* Which elements of a parameter a rank holds, as rectangles, and their initial values. */
#ifndef S4D_REAL_SHARD_H
#define S4D_REAL_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/program.h"
#include "support/safetensors.h" /* for: enum s4d_dtype */

/* Rows [row, row + rows) and columns [col, col + cols) of one part (rows x part_cols[part]) of the
 * whole parameter; element (i, j) of them is element local + i * local_stride + j of the shard. */
struct s4d_rectangle {
    int part;
    int64_t row, rows, col, cols, local, local_stride;
};
enum { S4D_RECTANGLES = 3 * S4D_PARTS }; /* a rest of a row, whole rows, a rest; of each part */

/* s4d_param_global_index for a whole shard: the rectangles that cover it without its padding.
 * Returns how many. */
int s4d_shard_rectangles(const struct s4d_program *p, const struct s4d_param *param,
                         const int coordinate[S4D_AXES], struct s4d_rectangle out[S4D_RECTANGLES]);

/* Fills the shard_elements of a rank's shard, of type `as` (F32 or F64). Element e of the whole
 * parameter (row * cols + col) depends on the seed, the parameter's name and e alone: normal times
 * init_std, or 0 or 1. Padding is zero. */
void s4d_shard_initial(const struct s4d_program *p, const struct s4d_param *param,
                       const int coordinate[S4D_AXES], uint64_t seed, enum s4d_dtype as,
                       void *shard);

/* Whether a file takes the parameter from this rank: of the ranks that hold the same elements, the
 * one at coordinate 0 of all axes that replicate them. */
bool s4d_shard_is_saved(const struct s4d_program *p, const struct s4d_param *param, int rank);

#endif
