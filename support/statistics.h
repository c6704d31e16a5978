/* SPDX-License-Identifier: Apache-2.0 */
/* What a list of measured times says. */
#ifndef S4D_SUPPORT_STATISTICS_H
#define S4D_SUPPORT_STATISTICS_H

struct s4d_statistics {
    int n;
    double median; /* of an even number of samples the mean of the middle two */
    double p99;    /* the smallest sample that at least 99 % of them do not exceed */
    double least, mean;
    double q1, q3; /* quartiles, interpolated (R's type 7) */
    /* Spread of the middle half, as a part of the median: (Q3 - Q1) / 1.349 / median, which for
     * normally distributed samples is standard deviation / mean. One sample that was interrupted
     * moves neither it nor the median. */
    double variation;
};

/* Of n >= 1 finite samples, which are left as they are. */
struct s4d_statistics s4d_statistics(const double *samples, int n);

/* Spearman's rank correlation of n pairs, equal values sharing their mean rank; NAN for fewer than
 * two, or where all of x or of y are equal. Takes n^2 steps. */
double s4d_rank_correlation(const double *x, const double *y, int n);

#endif
