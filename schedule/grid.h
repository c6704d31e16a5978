/* SPDX-License-Identifier: Apache-2.0 */
/* The process grid: G = Gx * Gy * Gz * Gpipe * Gdata ranks (arXiv 2305.13525 sec. 3, 2502.08145
 * sec. III).
 *
 * y splits the inner dimension k of a normal layer (its forward all-reduce), x the outer dimension
 * n and the attention heads (its backward all-reduce), z the weights' storage and the batch, data
 * the batch. Rank order, innermost first: y, x, z, pipe, data (AxoNN's column, row, depth). A grid
 * is written GXxGYxGZxGDATA. */
#ifndef S4D_SCHEDULE_GRID_H
#define S4D_SCHEDULE_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

enum s4d_axis { S4D_X, S4D_Y, S4D_Z, S4D_PIPE, S4D_DATA, S4D_AXES };

/* A set of axes, a bit each: (1u << S4D_Z) | (1u << S4D_DATA). A group is the set of ranks that
 * differ in a given set of axes alone. */
typedef unsigned s4d_axes;
#define S4D_AXIS(axis) (1u << (axis))

struct s4d_grid {
    int size[S4D_AXES];
    enum s4d_axis order[S4D_AXES]; /* innermost first */
};

extern const char *const s4d_axis_names[S4D_AXES]; /* "x", "y", "z", "pipe", "data" */

/* A grid of the given sizes in the default rank order; pipe is 1. */
struct s4d_grid s4d_grid_make(int x, int y, int z, int data);

/* "2x2x2x2" -> grid. Four positive integers, product at most 2^20; else -1 (exit 64). */
int s4d_grid_parse(const char *text, struct s4d_grid *grid, struct s4d_error *err);

/* grid -> "2x4x8x16" (pipe is not part of it), into text of the given size, returned. */
const char *s4d_grid_text(const struct s4d_grid *grid, char *text, size_t size);

/* "y,x,z,pipe,data" -> grid->order; every axis once, else -1 (exit 64). */
int s4d_rank_order_parse(const char *text, struct s4d_grid *grid, struct s4d_error *err);

/* "z,data" as a set of axes, each once; 0: it is none. */
s4d_axes s4d_axes_parse(const char *text);

int s4d_grid_ranks(const struct s4d_grid *grid);
void s4d_grid_coordinates(const struct s4d_grid *grid, int rank, int coordinate[S4D_AXES]);
int s4d_grid_rank(const struct s4d_grid *grid, const int coordinate[S4D_AXES]);

int s4d_group_size(const struct s4d_grid *grid, s4d_axes axes);
/* Members of rank's group over axes, ascending; members has room for s4d_group_size. Returns the
 * size. */
int s4d_group_members(const struct s4d_grid *grid, int rank, s4d_axes axes, int *members);
/* The place of rank in that list: the block it owns in an all-gather. */
int s4d_group_index(const struct s4d_grid *grid, int rank, s4d_axes axes);

/* What differs between ranks: base + sum over axes of coordinate[axis] * stride[axis], clipped to
 * [0, limit] when limit >= 0 (limit < 0: not clipped). */
struct s4d_expr {
    int64_t base, stride[S4D_AXES], limit;
};
struct s4d_expr s4d_constant(int64_t value);
bool s4d_expr_is_constant(const struct s4d_expr *e);
int64_t s4d_expr_value(const struct s4d_expr *e, const int coordinate[S4D_AXES]);

#endif
