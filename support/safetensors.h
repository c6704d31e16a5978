/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files (github.com/huggingface/safetensors, "Format"): a little-endian u64 n, a JSON
 * header of n bytes {"name": {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__"},
 * then the tensors' bytes, row-major, without hole or overlap.
 *
 * Reading is strict: every statement of the header is checked against the file before a tensor is
 * handed out. A file is opened once by each rank, which then reads only the blocks that it holds.
 * Writing is a stream into FILE.partial, renamed to FILE when all is on disk: a kill at any time
 * leaves FILE as it was. Errors name the file and the tensor. */
#ifndef S4D_SUPPORT_SAFETENSORS_H
#define S4D_SUPPORT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

enum s4d_dtype {
    S4D_DTYPE_F64,
    S4D_DTYPE_F32,
    S4D_DTYPE_F16,
    S4D_DTYPE_BF16,
    S4D_DTYPE_I64,
    S4D_DTYPE_I32,
    S4D_DTYPE_I16,
    S4D_DTYPE_I8,
    S4D_DTYPE_U64,
    S4D_DTYPE_U32,
    S4D_DTYPE_U16,
    S4D_DTYPE_U8,
    S4D_DTYPE_F8_E4M3,
    S4D_DTYPE_F8_E5M2,
    S4D_DTYPE_BOOL,
    S4D_DTYPES
};
extern const char *const s4d_dtype_names[S4D_DTYPES]; /* the format's: "F64", "BF16", ... */
extern const int s4d_dtype_bytes[S4D_DTYPES];

enum { S4D_SAFETENSORS_DIMS = 8, S4D_SAFETENSORS_HEADER_MAX = 100 * 1000 * 1000 };

struct s4d_safetensor {
    const char *name;
    enum s4d_dtype dtype;
    int dims; /* 0: one element */
    int64_t shape[S4D_SAFETENSORS_DIMS];
    int64_t elements;
    int64_t begin, bytes; /* from the start of the file; set by the library */
};

/* "[3, 4]" into text. Returns text. */
const char *s4d_safetensor_shape(const struct s4d_safetensor *t, char *text, size_t room);

struct s4d_safetensors;

/* 0, or -1 (exit 65; *st is NULL): not a regular file, a header beyond the file or 100 MB, bad
 * JSON, a name twice, an unknown dtype, a shape that is not the size, bytes outside the file,
 * overlaps, holes. */
int s4d_safetensors_open(const char *file, struct s4d_safetensors **st, struct s4d_error *err);
void s4d_safetensors_close(struct s4d_safetensors *st); /* NULL is allowed */

/* Tensors in the order of their bytes. */
int s4d_safetensors_count(const struct s4d_safetensors *st);
const struct s4d_safetensor *s4d_safetensors_get(const struct s4d_safetensors *st, int i);
const struct s4d_safetensor *s4d_safetensors_find(const struct s4d_safetensors *st,
                                                  const char *name); /* NULL: none */
/* A value of "__metadata__", NULL: none. */
const char *s4d_safetensors_metadata(const struct s4d_safetensors *st, const char *key);

/* Elements [first, first + n) as they are stored. 0, or -1 (exit 65: cannot be read any more). */
int s4d_safetensors_bytes(const struct s4d_safetensors *st, const struct s4d_safetensor *t,
                          int64_t first, int64_t n, void *out, struct s4d_error *err);

/* Rows [row, row + rows) and columns [col, col + cols) of a tensor, the last dimension being its
 * columns and all others its rows, converted to `as` (F32 or F64, rounded to nearest). Element (i,
 * j) goes to out[i * stride + j], or transposed to out[j * stride + i]. The block must lie inside
 * the tensor. 0, or -1 (exit 65): not a float type, cannot be read. */
struct s4d_safetensors_block {
    int64_t row, rows, col, cols;
    int64_t stride; /* elements of out */
    int transposed;
};
int s4d_safetensors_read(const struct s4d_safetensors *st, const struct s4d_safetensor *t,
                         const struct s4d_safetensors_block *block, enum s4d_dtype as, void *out,
                         struct s4d_error *err);

struct s4d_safetensors_writer;

/* Starts FILE with these tensors (name, dtype, dims, shape) in this order, and metadata as key,
 * value, ..., NULL (or NULL). 0, or -1 (exit 74, the system's words; *w is NULL): cannot be
 * created, being written by another process. */
int s4d_safetensors_create(const char *file, const struct s4d_safetensor *tensors, int n,
                           const char *const *metadata, struct s4d_safetensors_writer **w,
                           struct s4d_error *err);
/* The next bytes of the tensors, back to back. 0, or -1 (exit 74). */
int s4d_safetensors_write(struct s4d_safetensors_writer *w, const void *bytes, size_t n,
                          struct s4d_error *err);
/* All bytes have been written: to the disk, renamed. Frees w, also on failure: 0, or -1 (exit 74)
 * and FILE is as it was. */
int s4d_safetensors_finish(struct s4d_safetensors_writer *w, struct s4d_error *err);
/* Gives up: FILE is as it was. Frees w; NULL is allowed. */
void s4d_safetensors_abandon(struct s4d_safetensors_writer *w);

#endif
