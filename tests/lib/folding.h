/* SPDX-License-Identifier: Apache-2.0 */
/* A GPT iteration simulated unfolded and folded, side by side. */
#ifndef S4D_TESTS_FOLDING_H
#define S4D_TESTS_FOLDING_H

enum { FOLDING_SETTINGS = 4 };
struct folding {
    const char *machine, *grid;
    const char *set[FOLDING_SETTINGS]; /* differences, "nics.n0.nic0=dead"; NULL ends them */
    const char *placement;             /* NULL: node-major */
    const char *hosts;                 /* or as this list of nodes says, one a line; else NULL */
    int classes;                       /* of ranks, folded */
    double end_s;                      /* of the last op */
};

/* Runs both and fails the test unless every op of every rank ends at the same time, to 1e-9. */
void folding_compare(struct folding *f);

#endif
