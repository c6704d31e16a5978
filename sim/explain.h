/* SPDX-License-Identifier: Apache-2.0 */
/* What happened in a simulation, for those who ask: files of links, of the critical path and of a
 * timeline, and a summary of what bounds the iteration. */
#ifndef S4D_SIM_EXPLAIN_H
#define S4D_SIM_EXPLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "sim/kernel.h"
#include "sim/system.h"

/* What to write; a NULL file is not asked for. Existing files are replaced. */
struct s4d_explain {
    const char *links;         /* one line a link: sim/link_use.h */
    const char *critical_path; /* one line a step: sim/critical_path.h */
    const char *timeline;      /* of these ranks, both iterations: support/timeline.h */
    const int *rank;
    int n_ranks;
    FILE *summary;     /* gets the summary as JSON; it may be read in another process */
    const char *about; /* lines that start with '#' for the head of each TSV file; or NULL */
};

struct s4d_run;
/* s4d_execute, watched. 0, or -1: as s4d_execute, the programs of a pipe's stages (65), or a file
 * that cannot be written (74). */
int s4d_execute_explained(const struct s4d_system *system, const struct s4d_program *program,
                          const struct s4d_kernels *kernels, const struct s4d_explain *wanted,
                          struct s4d_run *run, struct s4d_error *err);

/* The summary: {"critical_path": {"steps", "by_stream": [{"stream", "time_s", "steps"}],
 * "by_op": [{"phase", "op", "name", "stream", "time_s", "steps"}], "by_rank": [{"rank", "members",
 * "time_s", "steps"}]}, "bounds": [{"stream", "groups",
 * "by_links": [{"links": ["nic-in", "nic-out"], "time_s"}]}]}; each "by" sums to iteration_time_s;
 * a rank stands for the members of its class; time_s of a bound is the mean over the stream's
 * groups; links [] is latency. Longest first. */

#endif
