/* SPDX-License-Identifier: Apache-2.0 */
/* The program of one fully connected layer, T = 4, k = 32, n = 64: test_linear_program.c works out
 * its ops by hand, test_linear_time.c its time. */
#ifndef S4D_TESTS_LIB_LINEAR_PROGRAM_H
#define S4D_TESTS_LIB_LINEAR_PROGRAM_H

#include "schedule/program.h"

struct s4d_program linear_program(struct s4d_grid grid, const char *overlap, bool transposed);

#endif
