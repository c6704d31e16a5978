/* SPDX-License-Identifier: Apache-2.0 */
#include "real/shard.h"

#include <string.h>

#include "schedule/initial.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of a shard: its (x, y) block in the whole, and which of the block's elements, row by row, it
 * holds. */
struct block {
    const struct s4d_param *param;
    int64_t row, cols;    /* its first row in the whole; its width, all parts */
    int64_t first, last;  /* elements [first, last) */
    int64_t split, place; /* of the columns */
};

/* Columns [col, last_col) of `rows` rows of the block from `row`, part by part. */
static int add(const struct block *b, int64_t row, int64_t rows, int64_t col, int64_t last_col,
               struct s4d_rectangle *out)
{
    int n = 0;
    int64_t start = 0; /* of the part in the block */
    for (int part = 0; part < b->param->parts && rows > 0; part++) {
        int64_t piece = b->param->part_cols[part] / b->split;
        int64_t from = most(col, start), to = least(last_col, start + piece);
        if (from < to)
            out[n++] = (struct s4d_rectangle){.part = part,
                                              .row = b->row + row,
                                              .rows = rows,
                                              .col = b->place * piece + from - start,
                                              .cols = to - from,
                                              .local = row * b->cols + from - b->first,
                                              .local_stride = b->cols};
        start += piece;
    }
    return n;
}

int s4d_shard_rectangles(const struct s4d_program *p, const struct s4d_param *param,
                         const int coordinate[S4D_AXES], struct s4d_rectangle out[S4D_RECTANGLES])
{
    struct block b = {.param = param, .split = 1};
    int64_t rows = param->padded_rows;
    if (param->row_axis >= 0) {
        rows /= p->grid.size[param->row_axis];
        b.row = coordinate[param->row_axis] * rows;
    }
    if (param->col_axis >= 0) {
        b.split = p->grid.size[param->col_axis];
        b.place = coordinate[param->col_axis];
    }
    b.cols = s4d_param_cols(param) / b.split;
    b.first = param->sharded_z ? coordinate[S4D_Z] * param->shard_elements : 0;
    b.last =
        least(b.first + param->shard_elements, most(0, least(rows, param->rows - b.row)) * b.cols);
    if (b.first >= b.last)
        return 0;
    int64_t row = b.first / b.cols, col = b.first % b.cols;
    int64_t end = b.last / b.cols, end_col = b.last % b.cols;
    if (row == end)
        return add(&b, row, 1, col, end_col, out);
    int n = 0;
    if (col > 0)
        n += add(&b, row++, 1, col, b.cols, out);
    n += add(&b, row, end - row, 0, b.cols, out + n);
    n += add(&b, end, 1, 0, end_col, out + n);
    return n;
}

void s4d_shard_initial(const struct s4d_program *p, const struct s4d_param *param,
                       const int coordinate[S4D_AXES], uint64_t seed, enum s4d_dtype as,
                       void *shard)
{
    struct s4d_rectangle v[S4D_RECTANGLES];
    int n = s4d_shard_rectangles(p, param, coordinate, v);
    int64_t cols = s4d_param_cols(param);
    memset(shard, 0, (size_t)(param->shard_elements * s4d_dtype_bytes[as]));
    for (int k = 0; k < n; k++) {
        int64_t first = v[k].row * cols + v[k].col;
        for (int part = 0; part < v[k].part; part++)
            first += param->part_cols[part];
        for (int64_t i = 0; i < v[k].rows; i++)
            for (int64_t j = 0; j < v[k].cols; j++) {
                double value = s4d_initial_weight(param, seed, 0, first + i * cols + j);
                int64_t at = v[k].local + i * v[k].local_stride + j;
                if (as == S4D_DTYPE_F64)
                    ((double *)shard)[at] = value;
                else
                    ((float *)shard)[at] = (float)value;
            }
    }
}

bool s4d_shard_is_saved(const struct s4d_program *p, const struct s4d_param *param, int rank)
{
    int coordinate[S4D_AXES];
    s4d_grid_coordinates(&p->grid, rank, coordinate);
    for (int a = 0; a < S4D_AXES; a++)
        if (param->replicated & S4D_AXIS(a) && coordinate[a] != 0)
            return false;
    return true;
}
