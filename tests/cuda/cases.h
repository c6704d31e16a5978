/* SPDX-License-Identifier: Apache-2.0 */
/* Random cases for every op kind: shapes, most of them awkward, contents, constants. */
#ifndef S4D_TESTS_CUDA_CASES_H
#define S4D_TESTS_CUDA_CASES_H

#include "real/device.h"

/* Operands: type (c compute, f any float, a accumulator, i i32), rows, columns (letters of
 * dimension), contents (of value); '?' in front: sometimes absent. In place: output and input. */
struct s4d_kernel_case {
    enum s4d_op_kind kind;
    const char *operand[S4D_OPERANDS];
    int in_place[3][2];
};
extern const struct s4d_kernel_case s4d_kernel_cases[];
extern const int s4d_n_kernel_cases;

struct s4d_case_shape {
    int64_t batch, seq, h, head_dim, heads, kv, vocab, held, m, n, k;
    int64_t first, valid;
};

/* The random numbers that follow are those of this seed. */
void s4d_draw_from(uint64_t seed);
int64_t s4d_draw(int64_t low, int64_t high); /* both included */

struct s4d_case_shape s4d_draw_shape(enum s4d_op_kind kind);
int64_t s4d_case_dimension(char letter, const struct s4d_case_shape *s);
double s4d_draw_value(char letter, const struct s4d_case_shape *s);
/* compute: of the program; first: of the first operand. */
enum s4d_type s4d_draw_type(char letter, enum s4d_type compute, enum s4d_type first);
union s4d_constants s4d_draw_constants(enum s4d_op_kind kind, const struct s4d_case_shape *s);

#endif
