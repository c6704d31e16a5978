/* SPDX-License-Identifier: Apache-2.0 */
/* A training run, from a program to its record. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/run/devices.h"
#include "cli/run/train.h"
#include "real/finite.h"
#include "real/host/host.h"
#include "real/mpi/peers.h"
#include "real/state.h"
#include "real/watch.h"
#include "support/memory.h"
#include "support/record.h"

static bool is_quiet(const struct s4d_train *t)
{
    return t->config->json || t->hooks.keep || t->world->rank != 0;
}

static int64_t completed(void *self)
{
    struct s4d_train *t = self;
    return t->beats + (t->stage >= 1 ? t->backend->completed(&t->device) : 0);
}

static void describe(void *self, char *text, int size)
{
    struct s4d_train *t = self;
    if (t->stage >= 1)
        t->backend->describe(&t->device, text, size);
    else
        snprintf(text, (size_t)size, "the start");
}

static int count_ended(const struct s4d_train *t)
{
    int n = 0;
    while (n < t->config->iterations && !isnan(s4d_executor_end_s(t->executor, n)))
        n++;
    return n;
}

/* The record of what was done, as far as rank 0 knows it. */
static void report_interrupted(struct s4d_train *t)
{
    struct s4d_error err;
    struct s4d_train_times times;
    int expected = 2;
    if (!atomic_compare_exchange_strong(&t->stage, &expected, 3))
        return;
    double *samples_s = s4d_malloc((size_t)(t->config->iterations + 1) * sizeof *samples_s);
    s4d_train_own_times(t, samples_s, &times);
    if (s4d_train_report(t, &times, count_ended(t), true, &err))
        s4d_error_print(&err);
    free(samples_s);
}

static void interrupted(void *self, const struct s4d_error *why)
{
    struct s4d_train *t = self;
    (void)why;
    if (t->world->rank == 0)
        report_interrupted(t);
}

static int ran(void *self, const struct s4d_call *call, int iteration, double start_s, double end_s,
               struct s4d_error *err)
{
    struct s4d_train *t = self;
    if (t->config->timeline) {
        struct s4d_train_event e = {call->index, iteration, start_s, end_s};
        s4d_push(t->events, t->n_events, t->cap_events, e);
    }
    s4d_real_account_ran(&t->account, call, iteration, start_s, end_s, err);
    return t->config->check_finite ? s4d_check_finite(&t->device, call, iteration, err) : 0;
}

static int open_device(struct s4d_train *t, struct s4d_error *err)
{
    const struct s4d_train_config *c = t->config;
    t->progress =
        s4d_host_progress(c->progress, s4d_mpi_peers(t->world, c->threads).oversubscribed);
    struct s4d_backend_options options = {.comm = t->world->comm,
                                          .tokens = t->tokens,
                                          .threads = c->threads,
                                          .progress = t->progress,
                                          .tf32 = c->tf32,
                                          .gemm_tuning = c->gemm_tuning,
                                          .gemm_cache = c->gemm_cache,
                                          .cuda_graphs = c->cuda_graphs,
                                          .group_timeout_s = c->waiting.group_timeout_s,
                                          .first_alone = true,
                                          .synchronous = c->check_finite};
    int rc = t->backend->open(&t->device, &t->program, &options, err);
    if (rc == S4D_BACKEND_ALONE)
        s4d_world_abort(t->world, err);
    if (rc)
        return -1;
    t->device.observer = (struct s4d_device_observer){ran, t};
    t->stage = 1;
    if (s4d_executor_create(&t->executor, &t->program, t->world->rank, &t->device, c->iterations,
                            err) ||
        s4d_state_initialise(t->executor, &t->device, &t->program, t->world->rank,
                             (uint64_t)c->seed, err))
        return -1;
    return c->load ? s4d_train_load(t, c->load, err) : 0;
}

static void print_iteration(const struct s4d_train *t, int i)
{
    const struct s4d_executor *x = t->executor;
    double before_s = i > 0 ? s4d_executor_end_s(x, i - 1) : t->start_s;
    printf("%9d %12.4f %12.6f ", i, s4d_executor_end_s(x, i) - before_s, s4d_executor_loss(x, i));
    if (t->config->schedule.options.clip_norm > 0)
        printf("%12.6g\n", s4d_executor_grad_norm(x, i));
    else /* it is not computed */
        printf("%12s\n", "-");
    fflush(stdout);
}

/* What has ended since *seen: printed, and the losses looked at. Nothing comes after a NaN, unless
 * the ranks are to end together. */
static int look_at_ended(struct s4d_train *t, int *seen, struct s4d_error *err)
{
    for (; *seen < t->config->iterations && !isnan(s4d_executor_end_s(t->executor, *seen));
         ++*seen) {
        double loss = s4d_executor_loss(t->executor, *seen);
        if (t->config->log_throughput)
            s4d_train_log_throughput(t, *seen);
        else if (!is_quiet(t))
            print_iteration(t, *seen);
        if (isfinite(loss) || t->hooks.keep)
            continue;
        s4d_fail(err, S4D_EXIT_CHECK, "", "iteration %d: the loss is %g", *seen, loss);
        return s4d_hint(err, "--check-finite names the op that first wrote a NaN or an infinity");
    }
    return 0;
}

/* The iterations. An error here ends the job at once, with the record of what was done: others wait
 * in collectives. */
static void iterate(struct s4d_train *t)
{
    const struct s4d_train_config *c = t->config;
    struct s4d_error err;
    int seen = 0, rc = 0;
    MPI_Barrier(t->world->comm);
    t->start_s = t->device.now_s(t->device.self);
    t->account.last_compute_s = t->start_s;
    t->stage = 2;
    for (int i = 0; i < c->iterations && !rc; i++) {
        rc = s4d_executor_issue(t->executor, &err);
        if (!rc && i == 0 && c->save_gradients) {
            rc = s4d_executor_finish(t->executor, &err);
            if (!rc)
                rc = s4d_train_save(t, c->save_gradients, true, &err);
        }
        if (!rc)
            rc = look_at_ended(t, &seen, &err);
    }
    if (!rc)
        rc = s4d_executor_finish(t->executor, &err);
    if (!rc)
        rc = look_at_ended(t, &seen, &err);
    if (rc) {
        s4d_watch_stop();
        interrupted(t, &err);
        s4d_world_abort(t->world, &err);
    }
}

/* Of a run whose ranks ended together. */
static int check_losses(const struct s4d_train *t, struct s4d_error *err)
{
    for (int i = 0; i < t->config->iterations; i++)
        if (!isfinite(s4d_executor_loss(t->executor, i)))
            return s4d_fail(err, S4D_EXIT_CHECK, "", "iteration %d: the loss is %g", i,
                            s4d_executor_loss(t->executor, i));
    return 0;
}

/* What was trained, and when what ran; the first exit code. A full disk does not keep the second
 * from being tried. */
static int write_files(struct s4d_train *t)
{
    const struct s4d_train_config *c = t->config;
    struct s4d_error err;
    int code = 0;
    if (c->save)
        code = s4d_world_agree(t->world, s4d_train_save(t, c->save, false, &err) ? &err : NULL);
    if (c->timeline && (code == 0 || code == S4D_EXIT_OUTPUT)) {
        int rc = s4d_train_timeline(t, c->timeline, &err);
        int second = s4d_world_agree(t->world, rc ? &err : NULL);
        code = code ? code : second;
    }
    return code;
}

/* The record is last: with it, a job that is ended was not interrupted. It is written, too, where
 * another file was not: its times are as good. */
static int finish(struct s4d_train *t)
{
    const struct s4d_train_config *c = t->config;
    struct s4d_error err;
    struct s4d_train_times times;
    int expected = 2;
    int code = s4d_world_agree(t->world, check_losses(t, &err) ? &err : NULL);
    code = code ? code : write_files(t);
    if (code && code != S4D_EXIT_OUTPUT)
        return code;
    double *samples_s = s4d_malloc((size_t)(c->iterations + 1) * sizeof *samples_s);
    int rc = s4d_train_gather(t, samples_s, &times, &err);
    if (!rc && t->world->rank == 0 && atomic_compare_exchange_strong(&t->stage, &expected, 3))
        rc = s4d_train_report(t, &times, c->iterations, false, &err);
    int reported = s4d_world_agree(t->world, rc ? &err : NULL);
    free(samples_s);
    return code ? code : reported;
}

static void print_start(const struct s4d_train *t)
{
    const struct s4d_program *p = &t->program;
    if (is_quiet(t))
        return;
    json_t *provenance = s4d_provenance(t->argc, t->argv);
    s4d_provenance_print(provenance, stdout);
    json_decref(provenance);
    printf("# workload %s (%s)  grid %dx%dx%dx%d (GXxGYxGZxGDATA)  global batch %d = %d "
           "micro-batch%s of %d on each of Gz Gdata  precision %s\n",
           p->model.name, t->workload.hash, p->grid.size[S4D_X], p->grid.size[S4D_Y],
           p->grid.size[S4D_Z], p->grid.size[S4D_DATA], p->options.global_batch, p->micro_batches,
           p->micro_batches == 1 ? "" : "es", p->options.micro_batch,
           s4d_type_names[p->options.precision]);
    if (t->config->backend == 0)
        printf("# host: %s  threads %d  progress %s\n", t->backend->about(), t->config->threads,
               s4d_progress_names[t->progress]);
    else
        printf("# %s: %s  tf32 %s  CUDA graphs %s\n", t->backend->name, t->backend->about(),
               t->config->tf32 ? "yes" : "no", t->config->cuda_graphs ? "yes" : "no");
    if (!t->config->log_throughput)
        printf("%9s %12s %12s %12s\n%9s %12s %12s %12s\n", "iteration", "time", "loss", "grad norm",
               "", "(s)", "", "");
    fflush(stdout);
}

static int watch(struct s4d_train *t)
{
    const struct s4d_world *w = t->world;
    struct s4d_error err;
    struct s4d_watch watch = {.rank = w->rank,
                              .host = w->host,
                              .timeout_s = t->config->waiting.timeout_s,
                              .limit_s = t->hooks.limit_s,
                              .n_peers = w->local_size,
                              .peer_rank = w->local_ranks,
                              .peer_pid = w->local_pids,
                              .completed = completed,
                              .describe = describe,
                              .interrupted = interrupted,
                              .self = t};
    return s4d_world_agree(w, s4d_watch_start(&watch, &err) ? &err : NULL);
}

int s4d_train_prepare(struct s4d_train *t)
{
    struct s4d_error err;
    int code = watch(t);
    if (!code)
        code = s4d_train_setup(t, &err);
    s4d_watch_stop();
    return code;
}

int s4d_train_run(struct s4d_train *t)
{
    struct s4d_error err;
    int code = watch(t);
    if (!code) {
        s4d_real_account_init(&t->account, &t->program, t->config->iterations);
        code = s4d_world_agree(t->world, open_device(t, &err) ? &err : NULL);
    }
    if (!code) {
        t->devices[0] = s4d_devices_gather(t->world, t->backend->state(&t->device));
        print_start(t);
        iterate(t);
        t->devices[1] = s4d_devices_gather(t->world, t->backend->state(&t->device));
        s4d_devices_warn(t->devices[0], t->devices[1]);
        code = finish(t);
    }
    s4d_watch_stop();
    MPI_Barrier(t->world->comm);
    return code;
}

void s4d_train_clean_up(struct s4d_train *t)
{
    int opened = t->stage >= 1;
    t->stage = 0;
    s4d_executor_free(t->executor);
    free(t->throughput);
    if (opened)
        t->device.close(t->device.self);
    if (t->account.p)
        s4d_real_account_fini(&t->account);
    s4d_tokens_close(&t->tokens);
    s4d_program_free(&t->program);
    s4d_workload_free(&t->workload);
    json_decref(t->devices[0]);
    json_decref(t->devices[1]);
    json_decref(t->preflight);
    free(t->events);
}
