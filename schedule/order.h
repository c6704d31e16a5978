/* SPDX-License-Identifier: Apache-2.0 */
/* What must happen before what: waits from operands, and the happens-before relation of a program.
 */
#ifndef S4D_SCHEDULE_ORDER_H
#define S4D_SCHEDULE_ORDER_H

#include "schedule/program.h"

/* Sets position of every op and its waits. Order waits (and memory waits that bound how many
 * buffers are in use) come as edges of list indices; data and memory waits follow from the
 * operands' byte ranges, within the iteration and from the one before. Waits implied by others, or
 * by the order in a stream, are left out. Within an iteration an op waits for ops earlier in the
 * list only, and for none of its own batch: what its ops do to one another's bytes is s4d_check's
 * to refuse. */
struct s4d_order_edge {
    int before, after; /* list indices, before < after */
    enum s4d_wait_kind kind;
};
void s4d_order(struct s4d_program *program, const struct s4d_order_edge *edges, int n_edges);

/* Happens-before on the program unrolled twice. clock[(iteration * n_ops + op) * S4D_STREAMS +
 * stream] = how many ops of that stream, counted over both iterations, have completed for certain
 * before the op starts. */
struct s4d_clocks {
    int n_ops;
    int *clock;
};
struct s4d_clocks s4d_clocks_make(const struct s4d_program *program);
void s4d_clocks_free(struct s4d_clocks *clocks);
/* Op a of iteration ia has completed before op b of iteration ib starts, whatever the timing. */
bool s4d_before(const struct s4d_program *p, const struct s4d_clocks *c, int ia, int a, int ib,
                int b);

#endif
