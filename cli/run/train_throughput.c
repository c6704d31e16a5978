/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run train --log-throughput: Megatron-LM's lines, as iterations end.
 *
 * What is printed is there already: rank 0's end of an iteration (no other rank is asked, where
 * Megatron-LM has all of them meet in a barrier), and the loss and the norm that it reports. */
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#include "cli/run/train.h"
#include "real/state.h"
#include "schedule/flops.h"
#include "support/memory.h"

static struct s4d_throughput *describe(const struct s4d_train *t)
{
    const struct s4d_program *p = &t->program;
    const struct s4d_options *o = &p->options;
    struct s4d_throughput *r = s4d_calloc(1, sizeof *r);
    r->iterations = t->config->iterations;
    r->devices = t->world->size;
    r->global_batch = o->global_batch;
    r->flops = s4d_formula_flops(&p->model, o->global_batch, o->recompute);
    r->learning_rate = o->learning_rate;
    r->has_norm = o->clip_norm > 0 || o->loss_scaling;
    r->loss_scale = S4D_LOSS_SCALE_START;
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == S4D_OP_SCALE_UPDATE)
            r->loss_scale_interval = p->ops[i].c.scale.interval;
    return r;
}

static void now(char *text, int size)
{
    struct timeval at;
    struct tm local;
    char seconds[40];
    gettimeofday(&at, NULL);
    localtime_r(&at.tv_sec, &local);
    strftime(seconds, sizeof seconds, "%Y-%m-%d %H:%M:%S", &local);
    snprintf(text, (size_t)size, "%s.%06ld", seconds, (long)at.tv_usec);
}

void s4d_train_log_throughput(struct s4d_train *t, int i)
{
    const struct s4d_executor *x = t->executor;
    char time[64], line[512];
    if (t->world->rank != 0)
        return;
    if (!t->throughput)
        t->throughput = describe(t);
    double before_s = i > 0 ? s4d_executor_end_s(x, i - 1) : t->start_s;
    now(time, sizeof time);
    s4d_throughput_line(t->throughput, i + 1, s4d_executor_end_s(x, i) - before_s,
                        s4d_executor_loss(x, i), s4d_executor_grad_norm(x, i), time, line,
                        sizeof line);
    FILE *out = t->config->json ? stderr : stdout;
    fprintf(out, "%s\n", line);
    fflush(out);
}
