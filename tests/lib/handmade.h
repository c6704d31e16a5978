/* SPDX-License-Identifier: Apache-2.0 */
/* Programs written by hand, and random ones, for tests of order, plan and check. */
#ifndef S4D_TESTS_HANDMADE_H
#define S4D_TESTS_HANDMADE_H

#include "schedule/order.h"
#include "schedule/program.h"

/* An empty program on a grid of one rank. */
struct s4d_program handmade(void);
int handmade_storage(struct s4d_program *p, int64_t bytes, bool persistent);
/* A 1-d view of n elements; the offset is in elements. */
int handmade_tensor(struct s4d_program *p, int storage, enum s4d_type type, int64_t offset,
                    int64_t n);
/* A view of n bytes. */
int handmade_bytes(struct s4d_program *p, int storage, int64_t offset, int64_t n);
/* Adds an op with the kind's accesses ('b' counts as accumulate); returns its list index. */
int handmade_op(struct s4d_program *p, enum s4d_op_kind kind, enum s4d_stream stream,
                const int *operands, int n);
int handmade_copy(struct s4d_program *p, enum s4d_stream stream, int from, int to);

/* n_ops copies, sums and all-reduces (in groups of one) of random ranges between n_storages
 * storages on random streams. Transient storages are written whole before they are used. */
struct s4d_program handmade_random(unsigned seed, int n_ops, int n_storages);

/* Makes batches of neighbours that communicate on one stream and do not touch the same bytes, where
 * there are any; before s4d_order. Returns how many. */
int handmade_batches(struct s4d_program *p);

/* Happens-before by its definition: a bit for every pair of ops of two iterations, closed over
 * streams, waits and batches by search. before[(b * 2n + a)]: a is done before b starts. Caller
 * frees. */
bool *handmade_closure(const struct s4d_program *p);

#endif
