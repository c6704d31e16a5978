/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines for Perfetto (ui.perfetto.dev) and chrome://tracing: the Trace Event Format's JSON,
 * written as it comes, beside, and renamed when it is whole. A process is a rank, a thread one of
 * its streams. */
#ifndef S4D_SUPPORT_TIMELINE_H
#define S4D_SUPPORT_TIMELINE_H

#include "support/error.h"

struct s4d_timeline;

/* 0, or -1 (exit 74; *t is NULL). */
int s4d_timeline_open(struct s4d_timeline **t, const char *file, struct s4d_error *err);
/* Before their first event. */
void s4d_timeline_process(struct s4d_timeline *t, int process, const char *name);
void s4d_timeline_thread(struct s4d_timeline *t, int process, int thread, const char *name);
/* Something from start_s to end_s. `arguments` is the inside of a JSON object, or "". */
void s4d_timeline_event(struct s4d_timeline *t, int process, int thread, const char *name,
                        const char *category, double start_s, double end_s, const char *arguments);
/* Frees t. 0, or -1 (exit 74) if any of it could not be written. */
int s4d_timeline_close(struct s4d_timeline *t, struct s4d_error *err);

#endif
