/* SPDX-License-Identifier: Apache-2.0 */
/* The options that ask what happened in a simulation, and the tables of --explain. */
#ifndef S4D_CLI_EXPLAIN_H
#define S4D_CLI_EXPLAIN_H

#include <jansson.h>
#include <stdio.h>

#include "sim/explain.h"
#include "support/option.h"

struct s4d_explain_options {
    bool explain;
    char *links, *critical_path, *timeline, *timeline_ranks;
};
extern const struct s4d_option s4d_explain_options[];

/* What the options ask for, while a simulation runs. */
struct s4d_explaining {
    struct s4d_explain wanted;
    bool any;
    char *about;
    int *ranks;
    json_t *summary;
};

/* 0, or -1: ranks that the job does not have, or without --timeline (64). End it in either case. */
int s4d_explain_begin(struct s4d_explaining *e, const struct s4d_explain_options *o, int gpus,
                      int argc, char **argv, struct s4d_error *err);
json_t *s4d_explain_summary(struct s4d_explaining *e); /* borrowed; NULL: not asked for */
void s4d_explain_end(struct s4d_explaining *e);

/* Tables of a record with "explain". */
void s4d_explain_print(const json_t *record, FILE *out);
/* Of sim/tune/terms.h. */
void s4d_terms_print(const json_t *terms, FILE *out);

#endif
