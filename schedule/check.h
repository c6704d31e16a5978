/* SPDX-License-Identifier: Apache-2.0 */
/* program_check: what must hold of every program, whoever built it. */
#ifndef S4D_SCHEDULE_CHECK_H
#define S4D_SCHEDULE_CHECK_H

#include "schedule/program.h"

/* 0, or -1 (exit 70) with the first violation named by op and operand: operands match the kind's
 * table, types and shapes; waits name earlier ops only (topological); each read has a writer that
 * happens before it, in this iteration or, for a persistent storage, in the one before or at
 * initialisation; no two unordered uses of the same bytes with a write, on the program unrolled
 * twice (by storage range before a plan, by arena bytes after it); a collective's members and count
 * agree with grid and tensors; its stream's axes are its own; a message's peer is on the pipe,
 * where its channel leads; the ops of a batch are neighbours, communicate on one stream, and
 * neither wait for nor disturb one another. */
int s4d_check(const struct s4d_program *program, struct s4d_error *err);

/* The programs of all stages of a pipe together, each of which has passed s4d_check. 0, or -1 (exit
 * 70) with what does not agree: their grids and stages; on every stream and between every two
 * stages, what one sends and the other receives, in order, by channel, count and type; and, in two
 * iterations in which every send by itself waits for its receive, two or more stages that wait for
 * each other for ever. */
int s4d_check_stages(const struct s4d_program *program, struct s4d_error *err);

#endif
