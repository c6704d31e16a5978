/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d collective, in three parts: what was asked for and run (collective.c), the columns and
 * records of a simulation (collective_print.c), beside a measurement (collective_against.c). */
#ifndef S4D_CLI_COLLECTIVE_H
#define S4D_CLI_COLLECTIVE_H

#include <jansson.h>

#include "cli/scenario.h"
#include "plots/nccl_tests.h"
#include "sim/collective/measure.h"
#include "support/option.h"

struct s4d_collective_options {
    char *machine, *op, *axis, *grid, *algorithm, *against;
    int ranks, factor, stepwise;
    int64_t smallest, largest;
    bool no_fold, json;
    struct s4d_texts set;
    struct s4d_scenario_options scenario;
};

/* Everything a run needs, checked. */
struct s4d_collective_job {
    const struct s4d_collective_options *config;
    struct s4d_machine machine;
    struct s4d_scenario scenario;
    struct s4d_measurement measurement;
    char op[32]; /* as nccl-tests spells it */
    double *bytes;
    int n, cap;
    struct s4d_measured *results, *stepwise; /* stepwise: NULL where it was not asked for */
    struct s4d_nccl_tests measured;          /* of --against */
    struct s4d_measured_system system;
};

double s4d_collective_bus_Bps(const struct s4d_collective_job *job, int i);
/* "LL128", or that it is the table's ("table*": outside its rows). */
const char *s4d_collective_protocol(const struct s4d_cost *cost);
json_t *s4d_collective_inputs(const struct s4d_collective_job *job);

/* The table, or one record a size. 0, or -1 (exit 74). */
void s4d_collective_print(const struct s4d_collective_job *job);
int s4d_collective_records(const struct s4d_collective_job *job, json_t *provenance,
                           struct s4d_error *err);

/* Whether the measurement is of what was simulated. 0, or -1 (exit 65). */
int s4d_against_check(const struct s4d_collective_job *job, struct s4d_error *err);
/* The table of errors, or one record. 0, or -1 (exit 74). */
void s4d_against_print(const struct s4d_collective_job *job);
int s4d_against_record(const struct s4d_collective_job *job, json_t *provenance,
                       struct s4d_error *err);

#endif
