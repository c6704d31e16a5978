/* SPDX-License-Identifier: Apache-2.0 */
/* A system whose collectives run message by message (sim/collective/messages.h), the check of its
 * coupled flows. Every rank, group and edge is there: it does not fold. */
#ifndef S4D_SIM_STEPWISE_H
#define S4D_SIM_STEPWISE_H

#include "sim/collective/messages.h"
#include "sim/system.h"

/* As an option: off, the library's chunk, or so many passes for each step. */
enum { S4D_STEPWISE_OFF = 0, S4D_STEPWISE_CHUNK = -1, S4D_STEPWISE_MOST_PASSES = 1 << 16 };

/* What calls send, in all their groups. */
struct s4d_message_count {
    double messages;
    int least_passes, most_passes; /* over the calls' edges; 0: no call */
};

struct s4d_stepwise;
/* system: unfolded, outlives it. grid: of its program. passes: as the option. */
struct s4d_stepwise *s4d_stepwise_create(const struct s4d_system *system,
                                         const struct s4d_grid *grid, int passes);
void s4d_stepwise_free(struct s4d_stepwise *w);

/* Adds `times` calls of an operation on all groups of a stream to *sum. algorithm: NULL: the
 * library's choice. */
void s4d_stepwise_count(struct s4d_stepwise *w, enum s4d_stream stream, enum s4d_op_kind op,
                        double bytes, const struct s4d_algorithm *algorithm, int times,
                        struct s4d_message_count *sum);
/* 0, or -1 (exit 65): more messages than this can do. */
int s4d_stepwise_check(const struct s4d_message_count *sum, struct s4d_error *err);

/* A fresh engine with the system's links, as they are numbered there, and a flow for each edge. */
struct s4d_engine *s4d_stepwise_engine(struct s4d_stepwise *w);
/* Starts a call of a group class, latency included: ended(context, group) when its last message has
 * arrived. A group has one call at a time. */
void s4d_stepwise_start(struct s4d_stepwise *w, struct s4d_engine *e, int group,
                        const struct s4d_group_flows *flows, enum s4d_op_kind op,
                        const struct s4d_cost *cost, s4d_callback ended, void *context);

#endif
