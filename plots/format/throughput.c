/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/format/throughput.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 4, 5))) static void add(char *line, int size, int *n,
                                                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (*n < size)
        *n += vsnprintf(line + *n, (size_t)(size - *n), format, arguments);
    va_end(arguments);
}

/* The rule of the op scale-update, whose input is whether the norm was finite. */
static bool skipped(struct s4d_throughput *t, double grad_norm)
{
    if (t->loss_scale_interval == 0)
        return false;
    if (!isfinite(grad_norm)) {
        t->loss_scale = fmax(t->loss_scale / 2, 1);
        t->good_steps = 0;
        return true;
    }
    if (++t->good_steps >= t->loss_scale_interval) {
        t->loss_scale *= 2;
        t->good_steps = 0;
    }
    return false;
}

void s4d_throughput_line(struct s4d_throughput *t, int iteration, double elapsed_s, double loss,
                         double grad_norm, const char *time, char *line, int size)
{
    double tflops = t->flops / (elapsed_s * 1e12 * t->devices);
    bool was_skipped = skipped(t, grad_norm);
    int n = 0;
    add(line, size, &n, " [%s] iteration %8d/%8d |", time, iteration, t->iterations);
    add(line, size, &n, " consumed samples: %12lld |", (long long)iteration * t->global_batch);
    add(line, size, &n, " elapsed time per iteration (ms): %.1f |", 1e3 * elapsed_s);
    add(line, size, &n, " throughput per GPU (TFLOP/s/GPU): %.*f |", tflops < 10 ? 4 : 1, tflops);
    add(line, size, &n, " learning rate: %.6E | global batch size: %5d |", t->learning_rate,
        t->global_batch);
    if (isfinite(loss))
        add(line, size, &n, " lm loss: %.6E |", loss);
    add(line, size, &n, " loss scale: %.1f |", t->loss_scale_interval > 0 ? t->loss_scale : 1.0);
    if (t->has_norm)
        add(line, size, &n, " grad norm: %.3f |", grad_norm);
    add(line, size, &n, " number of skipped iterations: %3d | number of nan iterations: %3d |",
        was_skipped, !isfinite(loss));
}
