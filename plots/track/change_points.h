/* SPDX-License-Identifier: Apache-2.0 */
/* Where a series of nights changed its level, and how sure that is.
 *
 * E-divisive means (Matteson and James 2014, arXiv 1306.4933; for performance tests: Daly et al.
 * 2020, arXiv 2003.00584). The best split of n nights into k and n - k is the one with the largest
 *
 *   Q(k) = k (n - k) / n (2 mean |x - y| - mean |x - x'| - mean |y - y'|),
 *
 * x before it and y from it on, each mean over pairs of different nights; at least two nights on
 * either side. It is a change where at most `p_max` of the random orders of the same nights have
 * a split as good; then both parts are searched in the same way.
 *
 * That is a test of one night. A verdict is asked for every night, and alarms once are too many, so
 * a change counts (`confirmed`) only if also
 * - the series has a week before it, and two nights since;
 * - it passes a least part of the level, the larger the fewer nights tell it, and a least multiple
 * of its standard error, both by the two weeks on either side, lest a slow drift adds up to one;
 * - of a level of two nights each is off the other level: one bad night confirms nothing;
 * - not more than a tenth of the nights before it were as bad: clusters that take turns.
 *
 * Pure functions of arrays: the same numbers and seed, the same bytes, on any machine. */
#ifndef S4D_PLOTS_TRACK_CHANGE_POINTS_H
#define S4D_PLOTS_TRACK_CHANGE_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "support/error.h"

enum {
    S4D_NIGHTS_MAX = 1000,
    S4D_NIGHTS_SETTLED = 7 /* nights before there is a level that could be lost */
};

struct s4d_level {
    double value; /* of any unit, finite and not below 0 */
    double error; /* its standard error as its own samples scatter; 0: there was one sample */
};

struct s4d_change_options {
    int permutations;
    double p_max;
    double magnitude; /* least part of the level before, 0.01: 1 % */
    double deviation; /* least multiple of the change's standard error */
    int seed;         /* of the random orders, not below 0 */
};
/* 999, 0.025, 0.01, 4, 1: chosen on seeds that no report uses; tests/bench/change.c measures them.
 */
struct s4d_change_options s4d_change_defaults(void);

struct s4d_change {
    int at;               /* the first night of the new level */
    int from, to;         /* nights [from, at) have the level before, [at, to) the level after */
    double before, after; /* of the two weeks on either side, as of a night's samples */
    double part;          /* after / before - 1; of 0 before: NAN */
    double p;             /* of the random orders, this one included, those with as good a split */
    double deviations;    /* the change in its standard errors */
    bool large;           /* enough to count, if it lasts */
    bool confirmed;
};

/* The night of n >= 1 samples: of four to 24 the median of the means of all pairs (Hodges and
 * Lehmann 1963), which one interrupted sample hardly moves, and which scatters 4 % more than a mean
 * where a median of five scatters 20 % more; of three the median; of more than 24 the mean without
 * the largest and the smallest fifth. The samples are sorted in place. */
struct s4d_level s4d_level_of(double *samples, int n);

/* All changes of n nights in their order, into v of n places. Returns how many; -1 with *err (exit
 * 65): more than S4D_NIGHTS_MAX, a value that is not finite or below 0. Of fewer than 4 nights
 * there are none. */
int s4d_change_points(const struct s4d_level *nights, int n,
                      const struct s4d_change_options *options, struct s4d_change *v,
                      struct s4d_error *err);

/* Whether change i of those found still stands: the present level is off the one before it in the
 * same direction, by as much as a change must be. One that went back later does not stand. */
bool s4d_change_stands(const struct s4d_level *nights, const struct s4d_change *v, int n_v, int i,
                       const struct s4d_change_options *options);

/* Whether the last night alone is off the level that the nights [from, n - 1) have, by the same
 * sizes: nothing yet, but a second night like it would be a change. n - 1 - from >= 2. */
bool s4d_night_stands_out(const struct s4d_level *nights, int from, int n,
                          const struct s4d_change_options *options, struct s4d_change *change);

/* Fewest nights with which `after` nights at another level can be a change at all: there are
 * 2 / C(n, after) orders as good as this one. */
int s4d_change_least_nights(int after, const struct s4d_change_options *options);

/* The largest Q of n >= 4 values, and where. */
double s4d_best_split(const double *values, int n, int *at);

#endif
