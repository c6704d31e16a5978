/* SPDX-License-Identifier: Apache-2.0 */
/* The toy interpreter: runs a program for all ranks of its grid in one process, naively.
 *
 * It proves a program executable before there is a real executor, and is the oracle afterwards.
 * Ranks take turns an op at a time, in any order that streams, waits and collectives allow, chosen
 * by a seed; a collective happens when every member is there, a message when the peer is, and what
 * is posted together one by one in any order. Of a pipe every rank runs the program of its stage.
 * Elements are loaded from their own type into doubles, computed with, and rounded on the way back.
 * Persistent storages start as zero (weights and the scalars of struct s4d_interpreter_options
 * apart), all other bytes as 0xFF, a NaN in every float type; a transient storage's bytes are
 * filled with 0xFF again before its first and after its last use in an iteration. An op that loads
 * such an element, touches bytes beyond its storage or uses an operand otherwise than declared is
 * reported. */
#ifndef S4D_TESTS_INTERPRETER_H
#define S4D_TESTS_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/program.h"

struct s4d_interpreter_options {
    bool planned; /* storages lie where the memory plan put them, else each by itself */
    uint64_t
        order_seed; /* 0: the order of the list; else ranks and streams drift apart at random */
    uint64_t weight_seed;
    double perturb;    /* added to weights initialised to 0 or 1: this times a normal number */
    double loss_scale; /* its first value, where the program has one */
    /* Fills the s + 1 tokens of a sequence (0 .. global batch - 1) of an iteration; a target below
     * zero is not kept, an input below zero has no embedding. */
    void (*tokens)(void *context, int iteration, int64_t sequence, int32_t *tokens, int count);
    void *context;
    /* An op held back as long as anything else can run, in every iteration; stream -1: none. */
    struct {
        int stream, position;
    } hold;
};

/* Order 0, no plan, nothing held, loss scale 1. */
struct s4d_interpreter_options s4d_interpreter_options_default(void);

struct s4d_interpreter;

/* The program, of a pipe with those of the other stages, is borrowed and must not change while the
 * interpreter lives. */
struct s4d_interpreter *s4d_interpreter_create(const struct s4d_program *program,
                                               const struct s4d_interpreter_options *options);
void s4d_interpreter_free(struct s4d_interpreter *in);

/* Runs `iterations` more, chained without a barrier. 0, or -1 with the first fault: the rank,
 * stream and op, and what it waits for if no op can run. */
int s4d_interpreter_run(struct s4d_interpreter *in, int iterations, struct s4d_error *err);

/* What iteration i reported (equal on all ranks, else it is a fault). */
double s4d_interpreter_loss(const struct s4d_interpreter *in, int iteration);
double s4d_interpreter_grad_norm(const struct s4d_interpreter *in, int iteration);

/* One element of a tensor as a rank sees it, row-major index; and the same written (tests of single
 * ops). */
double s4d_interpreter_get(const struct s4d_interpreter *in, int rank, int tensor, int64_t i);
void s4d_interpreter_set(struct s4d_interpreter *in, int rank, int tensor, int64_t i, double value);

/* The initial weight of element `index` of a whole parameter: what create put into the masters. */
double s4d_interpreter_initial(const struct s4d_param *param,
                               const struct s4d_interpreter_options *options, int64_t index);

/* A whole parameter, rows x sum(part_cols), from the shards of all ranks: 0, or -1 where an element
 * is held by none, replicas differ, or padding is not zero. */
enum s4d_interpreter_what { S4D_WHOLE_MASTER, S4D_WHOLE_WORKING, S4D_WHOLE_GRADIENT };
int s4d_interpreter_whole(const struct s4d_interpreter *in, const struct s4d_param *param,
                          enum s4d_interpreter_what what, double *whole, struct s4d_error *err);

#endif
