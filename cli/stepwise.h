/* SPDX-License-Identifier: Apache-2.0 */
/* The option --stepwise[=PASSES], and what it prints. */
#ifndef S4D_CLI_STEPWISE_H
#define S4D_CLI_STEPWISE_H

#include <jansson.h>
#include <stdio.h>

#include "sim/collective/measure.h"
#include "sim/stepwise.h"
#include "support/option.h"

/* The config holds an int: S4D_STEPWISE_OFF, S4D_STEPWISE_CHUNK, or the passes. */
#define S4D_STEPWISE_OPTION(field_offset)                                                          \
    {                                                                                              \
        .name = "stepwise", .argument = "PASSES", .type = S4D_OPT_PARSE, .offset = (field_offset), \
        .parse = s4d_stepwise_parse, .bare = "chunk",                                              \
        .help =                                                                                    \
            "also message by message, unfolded, as a check of the coupled flows: each step in "    \
            "messages of the library's chunk, or in so many PASSES"                                \
    }
int s4d_stepwise_parse(const char *text, void *field, struct s4d_error *err);

/* s4d_measure_collective twice, each in a child: as it is, and message by message (n results each).
 */
int s4d_stepwise_collective(const struct s4d_measurement *m, int stepwise, const double *bytes,
                            int n, struct s4d_measured *fluid, struct s4d_measured *by_message,
                            struct s4d_measured_system *system, struct s4d_error *err);

/* {"time_s", "difference", "messages", "passes"} for records, new reference: passes are the most
 * that a step was cut into; difference is from fluid_s, relative. */
json_t *s4d_stepwise_record(double time_s, double fluid_s, const struct s4d_message_count *sent);
/* A difference in percent for three decimals, without a zero's sign. */
double s4d_stepwise_percent(double difference);
/* Of a simulated iteration, as the record says it. */
void s4d_stepwise_print(const json_t *stepwise, FILE *out);

#endif
