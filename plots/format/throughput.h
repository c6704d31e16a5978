/* SPDX-License-Identifier: Apache-2.0 */
/* Megatron-LM's line of an iteration, as its --log-throughput prints it, so that what reads those
 * logs reads these. Words, order and digits are those of training_log in its
 * megatron/training/training.py (core 0.20.0), but for a throughput below 10 TFLOP/s, which has
 * four decimals: one would show a processor's core as 0.0. */
#ifndef S4D_PLOTS_FORMAT_THROUGHPUT_H
#define S4D_PLOTS_FORMAT_THROUGHPUT_H

#include <stdbool.h>
#include <stdint.h>

struct s4d_throughput {
    int iterations, devices, global_batch;
    double flops; /* of an iteration on all devices, by the formula */
    double learning_rate;
    bool has_norm; /* else the line has no gradient norm, like Megatron's */
    /* Dynamic loss scaling: halved (to 1 at least) where the gradient was not finite and the step
     * was skipped, doubled after so many good steps. 0 steps: no scaling, the scale is 1. */
    int64_t loss_scale_interval;
    double loss_scale;
    int64_t good_steps;
};

/* Of the iteration that ended last, counted from 1; the loss scale shown is the one after it, which
 * this moves. A loss that is not finite is left out, and counted. Fills the line without its end.
 */
void s4d_throughput_line(struct s4d_throughput *t, int iteration, double elapsed_s, double loss,
                         double grad_norm, const char *time, char *line, int size);

#endif
