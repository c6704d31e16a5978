/* SPDX-License-Identifier: Apache-2.0 */
/* A file of run records, one JSON line each, that survives being interrupted. */
#ifndef S4D_PLOTS_RECORDS_H
#define S4D_PLOTS_RECORDS_H

#include <jansson.h>

#include "support/error.h"

struct s4d_records {
    json_t **v;
    int n, cap;
};

/* Reads a file, but its empty lines; one that is not there, a pipe or a device has no records. A
 * last line that begins as one and has no newline was being written when a run ended, and is
 * dropped. 0, or -1 (exit 65) with file:line. */
int s4d_records_read(struct s4d_records *records, const char *file, struct s4d_error *err);
/* The same of a file that the user named, "-" of standard input: one that is not there is an error
 * (exit 65), and a last line counts without its newline, too. */
int s4d_records_load(struct s4d_records *records, const char *file, struct s4d_error *err);
/* Replaces the file by these records, at once or not at all. 0, or -1 (exit 74). */
int s4d_records_write(const struct s4d_records *records, const char *file, struct s4d_error *err);
/* Adds one record to list and file: the whole line in one write, or nothing where the disk is full;
 * a half line that a killed run left goes. Steals the record. 0, or -1 (exit 74). */
int s4d_records_append(struct s4d_records *records, const char *file, json_t *record,
                       struct s4d_error *err);
void s4d_records_free(struct s4d_records *records);

#endif
