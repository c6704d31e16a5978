/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run nightly: what its files share. */
#ifndef S4D_CLI_RUN_NIGHTLY_H
#define S4D_CLI_RUN_NIGHTLY_H

#include "cli/run/train.h"
#include "real/suite.h"
#include "real/suite_log.h"

struct s4d_nightly_config {
    char *output, *night, *host_class;
    double time_limit_s; /* 0: the file's */
    struct s4d_texts only;
    bool resume;
};

struct s4d_nightly {
    const struct s4d_nightly_config *config;
    struct s4d_world *world;
    int argc;
    char **argv;
    struct s4d_suite suite;
    char night[16];
    double time_limit_s, began_s; /* of the night; on the clock of s4d_nightly_now_s */
    struct s4d_error failed;      /* what all ranks agreed on last */
    /* Of rank 0 alone. */
    struct s4d_suite_log log;
    struct s4d_run_of { /* what is being run; experiment -1: nothing */
        int experiment, repeat;
        double began_s;
    } now;
    double *spent_s, *last_s;       /* by experiment: all its repeats; the last */
    int done, failures, unfinished; /* records of training, of failure, of what was not run */
};

/* Seconds of the day's clock: a night that goes on in another process goes by the same. */
double s4d_nightly_now_s(void);

/* nightly_records.c, of rank 0. A record (borrowed) of an experiment (-1: of the suite) and repeat
 * (0: none) gets its "suite", and is on the disk. 0, or -1 (exit 74). */
int s4d_nightly_keep(struct s4d_nightly *n, json_t *record, int experiment, int repeat,
                     struct s4d_error *err);
/* A record of kind failure, not interrupted, and a line for people. */
int s4d_nightly_fail(struct s4d_nightly *n, int experiment, int repeat, const struct s4d_error *why,
                     bool started, struct s4d_error *err);
/* The job is about to end (s4d_watch_at_end, s4d_world_abort): what ran has failed (why; NULL:
 * SIGTERM, and nothing else will run). */
void s4d_nightly_ending(void *self, const struct s4d_error *why);
/* FILE.running: what is run from now on. */
int s4d_nightly_now(struct s4d_nightly *n, int experiment, int repeat, struct s4d_error *err);
/* Of an earlier process of this night, with --resume: when it began, and what it was at when it
 * ended without a word has failed. */
int s4d_nightly_take_up(struct s4d_nightly *n, struct s4d_error *err);
/* Whether this process is to run it: of --only, all without. */
bool s4d_nightly_named(const struct s4d_nightly *n, int experiment);
/* Whether an experiment's repeat has still to be run. */
bool s4d_nightly_wants(const struct s4d_nightly *n, int experiment, int repeat);

/* What has become of the night, other processes' part included. */
struct s4d_nightly_count {
    int runs, failed; /* repeats that came to their end; experiments that did not */
    int out_of_time;  /* records of failure by a time limit */
};
struct s4d_nightly_count s4d_nightly_count(const struct s4d_nightly *n);

/* nightly_run.c: collective; A B A B, so that what a night does to one it does to the other. 0, or
 * the exit code with which all ranks end: the output could not be written. */
int s4d_nightly_run(struct s4d_nightly *n);

#endif
