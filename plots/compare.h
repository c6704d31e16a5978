/* SPDX-License-Identifier: Apache-2.0 */
/* Two files of records against each other: which belong together, and what changed.
 *
 * Records belong together if they have the same inputs: kind, machine's and workload's name, grid
 * and options, but not provenance, contents' hashes or results. Where a file holds several of the
 * same inputs, the first goes with the first, the second with the second. */
#ifndef S4D_PLOTS_COMPARE_H
#define S4D_PLOTS_COMPARE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "plots/records.h"

struct s4d_pair {
    json_t *old, *new; /* borrowed from the two lists */
    json_t *inputs;    /* flat: "machine.name": "perlmutter" */
    bool simulated;    /* both: results must be the same */
    char *differs;     /* simulated: the first result that is not the same, or NULL */
    double gain;       /* of its merit: new / old - 1, -1: lost; NAN: none in old */
    const char *merit; /* flops_per_s or busbw_Bps: more is better */
    bool beyond;       /* the threshold, or, without one, simulated and not the same */
};

struct s4d_comparison {
    struct s4d_pair *pair;
    int n, cap;
    json_t *only_old, *only_new; /* arrays of inputs, in the files' order */
    int beyond;
    int missing; /* of OLD's inputs, those that NEW lacks: fails like a loss; 0 lets it pass */
};

/* `threshold`: the least gain that passes, -0.03: a loss of 3 %; NAN: none. The lists outlive the
 * comparison. 0, or -1 (exit 65): a record without a kind, nothing matches, or a threshold and no
 * figure of merit in OLD. */
int s4d_compare_records(struct s4d_comparison *c, const struct s4d_records *old,
                        const struct s4d_records *new, double threshold, struct s4d_error *err);
void s4d_comparison_free(struct s4d_comparison *c);

/* One line a pair, then what only one file has, then a verdict. */
void s4d_comparison_print(const struct s4d_comparison *c, double threshold, FILE *out);
/* {kind: compare, threshold, pairs: [{inputs, results: {key: {old, new, change}}, ...}], only_old,
 * only_new, beyond, missing}: new reference. */
json_t *s4d_comparison_record(const struct s4d_comparison *c, double threshold);

/* The inputs of a record, flat; new reference. */
json_t *s4d_compare_inputs(const json_t *record);
/* "simulate perlmutter gpt-5b 64 GPUs 2x2x4x4", or with op and bytes; caller frees. */
char *s4d_inputs_label(const json_t *inputs);
/* A number by its dotted path; NAN where there is none. */
double s4d_compare_number(const json_t *record, const char *path);

/* "-3%" or "-0.03": a part in [-1, 0]. 0, or -1 (exit 64). For struct s4d_option's parse. */
int s4d_parse_threshold(const char *text, void *field, struct s4d_error *err);

#endif
