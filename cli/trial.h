/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of a file as simulations: sweep runs them, and a figure draws them.
 *
 * What a trial's result depends on is its key: a hash of machine, workload and scenario (contents,
 * not names alone), GPUs, options and the version of the model. A record whose experiment has the
 * same key need not be made again. */
#ifndef S4D_CLI_TRIAL_H
#define S4D_CLI_TRIAL_H

#include "cli/run_options.h"
#include "plots/records.h"
#include "plots/sweep.h"

struct s4d_trial {
    const struct s4d_sweep_entry *entry;
    struct s4d_run_options options;
    struct s4d_run_inputs in;
    char key[17];
};

struct s4d_trials {
    struct s4d_trial *v; /* one an experiment, in the sweep's order */
    int n;
    json_t *provenance;
    char program[17]; /* hash of this program's file */
};

/* The names of the run options as YAML keys, but for those in `but` (both end with NULL). Free
 * texts and list with s4d_run_keys_free. */
char **s4d_run_keys(const char *const *but);
void s4d_run_keys_free(char **keys);

/* Every experiment's inputs, loaded. provenance is taken. 0, or -1: an unknown key, a value that is
 * none, one that is missing or does not go with the others (exit 65, file:line). Free also after a
 * failure. */
int s4d_trials_load(struct s4d_trials *t, const struct s4d_sweep *sweep, json_t *provenance,
                    struct s4d_error *err);
void s4d_trials_free(struct s4d_trials *t);

/* The newest record of the trial's inputs and, where `program`, of this very program. NULL: none.
 */
json_t *s4d_trial_find(const struct s4d_trials *t, int i, const struct s4d_records *records,
                       bool program);

/* A record's "experiment": how it is found again, and what a figure tells of it. A new reference.
 */
json_t *s4d_trial_experiment(const struct s4d_trials *t, const struct s4d_trial *trial);

/* A record of the same inputs and program under whatever name, as the trial's own: a new reference,
 * or NULL. */
json_t *s4d_trial_of_others(const struct s4d_trials *t, int i, const struct s4d_records *records);

/* Runs trials which[0..n-1], at most `workers` processes at once, a child each, those of most GPUs
 * first. As each ends, done(context, trial, record, error) is called in this process: the record (a
 * new reference), or NULL and why there is none. Returns how many failed. */
int s4d_trials_run(const struct s4d_trials *t, const int *which, int n, int workers,
                   void (*done)(void *context, int trial, json_t *record,
                                const struct s4d_error *err),
                   void *context);

/* A trial's error for people: "FILE:LINE: NAME: " in front of where it was, and exit 65 in place of
 * 64: what is wrong stands in a file. */
struct s4d_error s4d_trial_error(const struct s4d_trial *t, const struct s4d_error *why);

/* "gpt-5b on 512 GPUs of perlmutter, grid 1x1x32x16: 1.2 s an iteration, 80 PFLOP/s". */
void s4d_trial_print(const json_t *record, FILE *out);

#endif
