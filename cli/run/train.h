/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run train: what its files share. */
#ifndef S4D_CLI_RUN_TRAIN_H
#define S4D_CLI_RUN_TRAIN_H

#include <jansson.h>
#include <stdatomic.h>

#include "cli/run/preflight.h"
#include "cli/run/waiting.h"
#include "plots/format/throughput.h"
#include "real/account.h"
#include "real/executor.h"
#include "real/host/host.h"
#include "real/mpi/backend.h"
#include "real/mpi/world.h"
#include "real/tokens.h"
#include "schedule/schedule_options.h"
#include "workloads/workload.h"

struct s4d_train_config {
    int backend;
    char *workload, *timeline, *record, *tokens, *text, *load, *save, *save_gradients, *gemm_cache,
        *host_class, *machine;
    int token_type, iterations, warmup, seed, threads, progress, gemm_tuning;
    struct s4d_waiting waiting;
    bool json, check_finite, list_backends, tf32, cuda_graphs, log_throughput, preflight;
    struct s4d_schedule_options schedule;
};

/* train.c: the options, and what they are where they are not given. */
extern const struct s4d_option_group s4d_train_groups[];
struct s4d_train_config s4d_train_config_default(void);
/* The health check of what a training runs on. */
struct s4d_preflight_config s4d_train_check_of(const struct s4d_train_config *c);

/* For who runs several trainings in one job; with `keep`, a loss that is NaN ends the run on all
 * ranks together, at its end, and nothing is printed. */
struct s4d_train_hooks {
    /* On rank 0: takes the record (borrowed), in place of standard output. */
    int (*keep)(void *self, json_t *record, struct s4d_error *err);
    void *self;
    double limit_s; /* of prepare and of run each, which end the job beyond it; 0: none */
};

struct s4d_train_event {
    int op, iteration;
    double start_s, end_s;
};

/* A training run of one rank. */
struct s4d_train {
    const struct s4d_train_config *config;
    int progress; /* enum s4d_progress_mode: the config's, or what auto is here */
    int argc;
    char **argv;
    struct s4d_world *world;
    struct s4d_train_hooks hooks;
    const struct s4d_backend *backend;
    struct s4d_workload workload;
    struct s4d_program program;
    struct s4d_token_source tokens;
    struct s4d_device device;
    struct s4d_executor *executor;
    struct s4d_real_account account;
    json_t *devices[2]; /* of all ranks before and after the iterations, of rank 0 */
    json_t *preflight;  /* its record, of rank 0; NULL: not asked for */
    int warmup;         /* of config->iterations, not timed */
    double start_s;     /* of the first iteration */
    /* Stages for the watching thread: 0 nothing yet, 1 the device may be asked, 2 and the record
     * may be written, 3 the record has been, or is being, written. */
    _Atomic int stage;
    _Atomic int64_t beats;          /* steps of the work before and after the iterations */
    struct s4d_train_event *events; /* of --timeline */
    int n_events, cap_events;
    struct s4d_throughput *throughput; /* of --log-throughput */
};

/* train_run.c: config, world, backend and hooks are set; collective. Each watches the ranks
 * meanwhile. The exit code, the same on all ranks; errors have been printed. */
int s4d_train_prepare(struct s4d_train *t);   /* s4d_train_setup */
int s4d_train_preflight(struct s4d_train *t); /* --preflight; by itself watched, too */
int s4d_train_run(struct s4d_train *t);       /* after prepare: device, iterations, record */
void s4d_train_clean_up(struct s4d_train *t);

/* train_setup.c: workload, program, tokens; on every rank the same, or an error on all. */
int s4d_train_setup(struct s4d_train *t, struct s4d_error *err);

/* train_files.c: weights and gradients between shards and safetensors; collective. */
int s4d_train_load(struct s4d_train *t, const char *file, struct s4d_error *err);
int s4d_train_save(struct s4d_train *t, const char *file, bool gradients, struct s4d_error *err);

/* train_record.c */
struct s4d_train_times {
    int n; /* timed iterations */
    const double *samples_s;
    double first_s;                       /* of the first iteration */
    int median;                           /* the iteration of the median sample: the lower of two */
    int slowest_rank;                     /* in it; -1: not known */
    struct s4d_account_iteration account; /* of that rank, then */
};
/* Collective: rank 0 learns of all ranks. Samples are the caller's room of config->iterations. */
int s4d_train_gather(struct s4d_train *t, double *samples_s, struct s4d_train_times *times,
                     struct s4d_error *err);
/* What rank 0 alone knows of the iterations that have ended. */
void s4d_train_own_times(struct s4d_train *t, double *samples_s, struct s4d_train_times *times);
/* Of a prepared run: backend, host_class and everything that changes its result. */
void s4d_train_inputs(json_t *record, const struct s4d_train *t);
/* Record, or text with --json off, on standard output; or to hooks.keep. */
int s4d_train_report(const struct s4d_train *t, const struct s4d_train_times *times, int completed,
                     bool interrupted, struct s4d_error *err);

/* train_timeline.c: rank 0 writes what all ranks recorded; collective. */
int s4d_train_timeline(struct s4d_train *t, const char *file, struct s4d_error *err);

/* train_throughput.c: the line of an iteration that has ended, on rank 0; others print nothing. */
void s4d_train_log_throughput(struct s4d_train *t, int iteration);

#endif
