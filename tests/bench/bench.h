/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are measured, and the groups of measurements. */
#ifndef S4D_TESTS_BENCH_H
#define S4D_TESTS_BENCH_H

#include <jansson.h>

struct bench_run {
    double wall_s, cpu_s, memory_MB; /* of the command's own process: its largest resident set */
    json_t *record;                  /* the last line of standard output that is one, or NULL */
};

/* Runs a command line through the shell; what it says on standard error is shown. */
struct bench_run bench(const char *command);
/* NaN where it is no number. */
double bench_number(const json_t *record, const char *key);
double bench_now_s(void);

/* Training by build/scale4d-run: its speed beside PyTorch's, and where its time goes. */
void bench_training(void);
/* A store of nightly records: its size, and how long its commands take. */
void bench_track(void);
/* Changes of nightly series: how many are found, how many are none. */
void bench_changes(void);

#endif
