/* SPDX-License-Identifier: Apache-2.0 */
/* Two small models, GPT and Llama, and grids that cut them in every way. */
#ifndef S4D_TESTS_MODELS_H
#define S4D_TESTS_MODELS_H

#include "tests/lib/training.h"

/* Two layers, f32, a vocabulary of 45, which neither 2 nor 4 divides: the last rows of x are
 * padding. Biases and gains start as 0 and 1. GPT: hidden size 16, 4 heads. Llama: hidden size 32,
 * 8 heads of 4, 4 key-value heads, untied. */
enum s4d_test_model { S4D_TEST_GPT, S4D_TEST_LLAMA, S4D_TEST_MODELS };
struct s4d_case s4d_test_case(enum s4d_test_model model, int x, int y, int z, int data);

/* One rank first; then sizes 1, 2, 4, 8 and z of 3 and 5. Ends the program if it cannot be built.
 */
enum { S4D_TEST_GRIDS = 8 };
void s4d_test_program(struct s4d_program *p, enum s4d_test_model model, int grid);

#endif
