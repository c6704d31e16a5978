/* SPDX-License-Identifier: Apache-2.0 */
/* A night's suite: the YAML file of its experiments.
 *
 *     name: cluster                  # default: the file's name
 *     time_limit: 3600 s             # of the night
 *     experiment_time_limit: 600 s   # of an experiment, all its repeats; or its own time_limit
 *     repeats: 3                     # the night runs A B A B A B
 *     preflight: stop                # off | go-on | stop: where it finds something wrong
 *     rates: true                    # each experiment's operations are measured alone, too
 *     global_batch: 512              # the options of what is run: for all ...
 *     experiments:
 *       - {name: a, workload: gpt-5b, grid: 4x2x4x2}
 *       - {name: b, workload: gpt-10b, grid: 4x4x4x1, global_batch: 1024}   # ... or for one
 *
 * What an experiment's options are is the business of whoever runs it: a table of theirs is filled.
 */
#ifndef S4D_REAL_SUITE_H
#define S4D_REAL_SUITE_H

#include <stdbool.h>

#include "support/option.h"

enum s4d_suite_preflight {
    S4D_SUITE_PREFLIGHT_OFF,
    S4D_SUITE_PREFLIGHT_GO_ON,
    S4D_SUITE_PREFLIGHT_STOP
};

struct s4d_suite_experiment {
    char *name;          /* one line, unique */
    double time_limit_s; /* 0: none */
    const struct s4d_yaml_node *node;
    void *config; /* a copy of the defaults, filled */
};

struct s4d_suite {
    char *name;
    char *machine;                                /* of the preflight; NULL: none */
    double time_limit_s, experiment_time_limit_s; /* 0: none */
    int repeats;                                  /* 1 to 1000 */
    int preflight;                                /* enum s4d_suite_preflight */
    bool rates;
    struct s4d_suite_experiment *v;
    int n, cap;
    const struct s4d_option_group *groups; /* of the configs */
    struct s4d_yaml_node *root;
};

/* What experiments may say: tables, the struct they fill, those of its options that a suite has no
 * use for (ends with NULL). */
struct s4d_suite_options {
    const struct s4d_option_group *groups;
    const void *defaults; /* its texts and lists are empty */
    size_t bytes;
    const char *const *refused;
};

/* 0, or -1 (exit 65, file:line): no such file, no experiments, an unknown key, a value that is
 * none, a name that is missing or there twice. Free with s4d_suite_free, also after a failure. */
int s4d_suite_read(struct s4d_suite *s, const char *file, const struct s4d_suite_options *options,
                   struct s4d_error *err);
/* The same of a tree that the suite then owns; name: of a suite that says none. */
int s4d_suite_make(struct s4d_suite *s, struct s4d_yaml_node *root, const char *name,
                   const struct s4d_suite_options *options, struct s4d_error *err);
void s4d_suite_free(struct s4d_suite *s);

#endif
