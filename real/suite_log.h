/* SPDX-License-Identifier: Apache-2.0 */
/* What a night has written: a file of records, one JSON line each, to which whole lines are added
 * that are on the disk before anything else happens; and beside it FILE.running, which says what
 * is being run, and is there until the suite has come to its end. */
#ifndef S4D_REAL_SUITE_LOG_H
#define S4D_REAL_SUITE_LOG_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/error.h"

struct s4d_suite_log {
    char *file, *running;
    int fd;
    json_t *records; /* an array: what the file held, and what was added */
    pthread_mutex_t lock;
    atomic_bool closed; /* by s4d_suite_log_last */
};

/* Takes the file, which nobody else may write meanwhile; half a line at its end, of a run that was
 * killed, goes. 0, or -1: it cannot be written or another has it (exit 74), a line that is no
 * record (exit 65, file:line). Close also after a failure. */
int s4d_suite_log_open(struct s4d_suite_log *log, const char *file, struct s4d_error *err);
void s4d_suite_log_close(struct s4d_suite_log *log);

/* Adds the record, which is borrowed, or an array of them; of any thread. The lines are whole and
 * on the disk, or none of them is there. 0, or -1 (exit 74). */
int s4d_suite_log_add(struct s4d_suite_log *log, json_t *record, struct s4d_error *err);
int s4d_suite_log_add_all(struct s4d_suite_log *log, json_t *records, struct s4d_error *err);
/* The last words are this thread's: until the end of the process whoever else adds something waits.
 * false: somebody has had them already. */
bool s4d_suite_log_last(struct s4d_suite_log *log);

/* FILE.running: what it says (a new reference; NULL: it is not there, or says nothing), replaced
 * (state is borrowed), removed. 0, or -1 (exit 74). */
json_t *s4d_suite_log_state(const struct s4d_suite_log *log);
int s4d_suite_log_run(struct s4d_suite_log *log, json_t *state, struct s4d_error *err);
int s4d_suite_log_end(struct s4d_suite_log *log, struct s4d_error *err);

/* Of the suite's records of a night: how many of this kind (NULL: any) and experiment (NULL: of the
 * whole suite), with repeat where it is above 0. of: whether they were interrupted. */
enum s4d_suite_which { S4D_SUITE_ANY, S4D_SUITE_WHOLE, S4D_SUITE_INTERRUPTED };
int s4d_suite_log_count(const struct s4d_suite_log *log, const char *suite, const char *night,
                        const char *kind, const char *experiment, int repeat,
                        enum s4d_suite_which which);
/* The last night of the suite in the file, or NULL. */
const char *s4d_suite_log_night(const struct s4d_suite_log *log, const char *suite);

#endif
