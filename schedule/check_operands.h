/* SPDX-License-Identifier: Apache-2.0 */
/* The part of s4d_check that looks at one op alone: operands, types, shapes, streams, groups. */
#ifndef S4D_SCHEDULE_CHECK_OPERANDS_H
#define S4D_SCHEDULE_CHECK_OPERANDS_H

#include "schedule/program.h"

/* 0, or -1 (exit 70) with the operand named. */
int s4d_check_operands(const struct s4d_program *program, int op, struct s4d_error *err);

/* Fills *err with "op 12, compute[3] gemm mlp.up, layer 0, micro-batch 1" as the place; -1. */
int s4d_check_fail(const struct s4d_program *program, int op, struct s4d_error *err,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
