/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine file says of the health check's rates, by the simulator's own models of kernels
 * and collectives. 0: nothing; numbers that the file assumes, and those without limit, are no
 * measure of a device. (Apart from real/, which has another struct s4d_device than machine files.)
 */
#ifndef S4D_CLI_RUN_PREFLIGHT_MACHINE_H
#define S4D_CLI_RUN_PREFLIGHT_MACHINE_H

#include <stdint.h>

#include "schedule/op.h"

struct s4d_preflight_machine;

/* 0, or -1 (exit 65). */
int s4d_preflight_machine_load(struct s4d_preflight_machine **m, const char *name,
                               struct s4d_error *err);
void s4d_preflight_machine_free(struct s4d_preflight_machine *m); /* NULL: nothing */
const char *s4d_preflight_machine_name(const struct s4d_preflight_machine *m);
const char *s4d_preflight_machine_hash(const struct s4d_preflight_machine *m);

/* Once, before rates are asked for: of so many ranks, ranks_per_node consecutive ones on each node
 * (0: not so regular). What is not compared and why, or "". */
const char *s4d_preflight_machine_use(struct s4d_preflight_machine *m, int ranks,
                                      int ranks_per_node, enum s4d_type precision);
/* FLOP/s of products of n x n matrices by so many ranks at once. */
double s4d_preflight_machine_product(const struct s4d_preflight_machine *m, int64_t n, int ranks);
/* Bytes/s of a copy (S4D_OP_COPY: read and written), or between host and device. */
double s4d_preflight_machine_copy(const struct s4d_preflight_machine *m, enum s4d_op_kind kind,
                                  int64_t bytes);
/* Bus bandwidth of an all-reduce in all groups of `members` ranks that are `inner` apart. */
double s4d_preflight_machine_sum(const struct s4d_preflight_machine *m, int inner, int members,
                                 int64_t bytes);

#endif
