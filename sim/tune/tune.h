/* SPDX-License-Identifier: Apache-2.0 */
/* The best of a ranking, simulated: what the closed forms say, checked. */
#ifndef S4D_SIM_TUNE_TUNE_H
#define S4D_SIM_TUNE_TUNE_H

#include "sim/simulate.h"
#include "sim/tune/space.h"

/* A configuration of the ranking. Simulated times are -1 until known. */
struct s4d_tuned {
    struct s4d_choice choice;
    int rank;                    /* by estimate, from 1, among all configurations that fit */
    int simulated_rank;          /* by time, from 1, among those simulated; 0: not simulated */
    double time_s, memory_bytes; /* simulated iteration, memory by its plan */
    struct s4d_error fault;      /* exit 0: none */
    /* Communication by the published model (sim/tune/published.h): with its authors' tables (NAN
     * where they have no such group, or not this machine), and with the machine's links. */
    double published_s, links_s;
};

/* The best k of the ranking with no more than `variants` of one grid: *list (the caller frees it),
 * in the ranking's order. Returns how many. */
int s4d_tune_pick(const struct s4d_ranking *r, int k, int variants, struct s4d_tuned **list);

/* Fills in published_s and links_s of the list. 0, or -1: a machine that cannot be laid out (65).
 */
int s4d_tune_published(const struct s4d_space *s, struct s4d_tuned *list, int n,
                       struct s4d_error *err);

/* Simulates those of the list without a time, `workers` at once, each in its own process. finished
 * is told of each as it ends, with the result where there is no fault. A worker that dies is the
 * fault of its configuration alone. */
struct s4d_tune_watch {
    void (*finished)(void *context, int index, const struct s4d_result *result);
    void *context;
};
void s4d_tune_simulate(const struct s4d_space *s, struct s4d_tuned *list, int n, int workers,
                       const struct s4d_tune_watch *watch);
/* Its worker ended without a result; else a fault says that its plan does not fit, where the closed
 * form took it to. */
bool s4d_tuned_died(const struct s4d_tuned *t);
/* What simulating one of them takes. */
struct s4d_simulation s4d_tune_simulation(const struct s4d_space *s, const struct s4d_choice *c);

/* Sets the ranks by time (equal ones by estimate). Returns the index of the fastest, -1: none. */
int s4d_tune_order(struct s4d_tuned *list, int n);
/* Spearman's rank correlation of a model's times and the simulated ones, of those that have both;
 * NAN for fewer than two. */
enum s4d_tune_model { S4D_TUNE_ESTIMATE, S4D_TUNE_PUBLISHED, S4D_TUNE_LINKS };
double s4d_tune_correlation(const struct s4d_tuned *list, int n, enum s4d_tune_model model);

#endif
