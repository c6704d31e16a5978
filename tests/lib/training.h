/* SPDX-License-Identifier: Apache-2.0 */
/* The same training three ways: a program on a grid by the interpreter, a program on one rank, and
 * the serial reference; and the comparison of what came out. */
#ifndef S4D_TESTS_TRAINING_H
#define S4D_TESTS_TRAINING_H

#include "schedule/program.h"
#include "tests/lib/interpreter.h"

/* What is trained, and how. Tokens: random but fixed ones, the same sequences every iteration
 * unless `fresh`; a fraction `dropped` of them is -1. */
struct s4d_case {
    struct s4d_model model;
    struct s4d_grid grid;
    struct s4d_options options;
    struct s4d_interpreter_options run;
    int iterations;
    double dropped;
    bool fresh;
};

/* A GPT of 2 layers, hidden size 4 * heads, mlp 3 * hidden size, sequences of 8 of a vocabulary of
 * 48, batch 16, f32, clipping and all overlaps, weights large enough that every gradient matters.
 * AdamW's epsilon is 1e-3, far above the rounding of gradients that are zero in exact arithmetic
 * (the key biases'), which a small one would blow up to full steps. */
struct s4d_case s4d_case_default(int heads, int x, int y, int z, int data);

/* Grid i of the 70 of powers of two with at most 16 ranks, that of one rank first; false: no such.
 */
bool s4d_case_grid(int i, struct s4d_grid *grid);

/* The interpreter's options of a case, tokens included; the case must outlive their use. */
struct s4d_interpreter_options s4d_case_run(const struct s4d_case *c);

enum { S4D_CASE_ITERATIONS = 8 };
struct s4d_trained {
    int n;
    struct s4d_trained_param {
        char name[64]; /* Hugging Face's */
        int64_t n;
        double *gradient, *weight; /* whole; of the last iteration, and after it */
    } * params;
    double loss[S4D_CASE_ITERATIONS], grad_norm[S4D_CASE_ITERATIONS];
};
void s4d_trained_free(struct s4d_trained *t);

/* Builds, plans if run.planned, checks (schedule/check.h), runs. 0, or -1 with the fault. Also a
 * fault: replicas that differ, padding that is not zero, working weights that are not the masters
 * rounded. */
int s4d_train(const struct s4d_case *c, struct s4d_trained *out, struct s4d_error *err);
/* A program built and perhaps changed by the caller. */
int s4d_train_program(const struct s4d_program *p, const struct s4d_case *c,
                      struct s4d_trained *out, struct s4d_error *err);
/* The reference, on the same initial weights. */
void s4d_train_reference(const struct s4d_case *c, struct s4d_trained *out);

/* For central differences: the loss of the first iteration with a parameter's weights moved by e
 * times a fixed random direction (NaN: a fault); and the gradient's slope in that direction, with
 * the root of its terms' squared sum in *size. */
double s4d_case_moved_loss(const struct s4d_program *p, const struct s4d_case *c, int param,
                           double e);
double s4d_case_slope(const struct s4d_trained *t, int param, double *size);

/* Largest |a - b| / |b| of any tensor, losses and norms; *what names it. */
struct s4d_difference {
    double gradient, weight, loss, grad_norm;
    const char *gradient_of, *weight_of;
};
struct s4d_difference s4d_compare(const struct s4d_case *c, const struct s4d_trained *a,
                                  const struct s4d_trained *b);

#endif
