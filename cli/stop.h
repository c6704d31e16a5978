/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C and SIGTERM in a command that keeps what is finished in a file of records. */
#ifndef S4D_CLI_STOP_H
#define S4D_CLI_STOP_H

#include "plots/records.h"

/* From now on the process that called this says, when stopped, that the finished records stay in
 * file, and exits with 128 + the signal; its children leave quietly. */
void s4d_stop_keeps(const char *file);
/* s4d_records_append, which a stop waits for: the line is whole. */
int s4d_stop_append(struct s4d_records *records, const char *file, json_t *record,
                    struct s4d_error *err);

#endif
