/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stepwise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/isolate.h"
#include "support/memory.h"
#include "support/units.h"

int s4d_stepwise_parse(const char *text, void *field, struct s4d_error *err)
{
    int64_t passes = S4D_STEPWISE_CHUNK;
    if (strcmp(text, "chunk") != 0 &&
        s4d_parse_int(text, 1, S4D_STEPWISE_MOST_PASSES, &passes, err))
        return -1;
    *(int *)field = (int)passes;
    return 0;
}

struct twice {
    struct s4d_measurement m[2];
    const double *bytes;
    int n;
};
struct answer {
    struct s4d_measured_system system;
    struct s4d_measured results[];
};

static int once(void *context, int index, void *result, struct s4d_error *err)
{
    const struct twice *t = context;
    struct answer *answer = result;
    return s4d_measure_collective(&t->m[index], t->bytes, t->n, answer->results, &answer->system,
                                  err);
}

int s4d_stepwise_collective(const struct s4d_measurement *m, int stepwise, const double *bytes,
                            int n, struct s4d_measured *fluid, struct s4d_measured *by_message,
                            struct s4d_measured_system *system, struct s4d_error *err)
{
    struct twice t = {{*m, *m}, bytes, n};
    struct s4d_error errors[2] = {{0}};
    size_t some = (size_t)n * sizeof *fluid, size = sizeof(struct answer) + some;
    char *answers = s4d_calloc(2, size);
    t.m[1].stepwise = stepwise;
    int failed = s4d_isolated(once, &t, 2, 1, answers, size, errors, NULL);
    if (failed)
        *err = errors[errors[0].exit == S4D_EXIT_OK];
    memcpy(fluid, ((struct answer *)answers)->results, some);
    memcpy(by_message, ((struct answer *)(answers + size))->results, some);
    *system = ((struct answer *)answers)->system;
    free(answers);
    return failed ? -1 : 0;
}

json_t *s4d_stepwise_record(double time_s, double fluid_s, const struct s4d_message_count *sent)
{
    return json_pack("{s:f, s:f, s:I, s:i}", "time_s", time_s, "difference", time_s / fluid_s - 1,
                     "messages", (json_int_t)sent->messages, "passes", sent->most_passes);
}

double s4d_stepwise_percent(double difference)
{
    return fabs(difference) < 5e-6 ? 0 : 100 * difference;
}

void s4d_stepwise_print(const json_t *stepwise, FILE *out)
{
    double time_s = json_number_value(json_object_get(stepwise, "time_s"));
    double difference = json_number_value(json_object_get(stepwise, "difference"));
    fprintf(out,
            "%-10s %12.3f   message by message, %.3f %% more: %lld messages, at most %lld passes a "
            "step\n",
            "stepwise", 1e3 * time_s, s4d_stepwise_percent(difference),
            json_integer_value(json_object_get(stepwise, "messages")),
            json_integer_value(json_object_get(stepwise, "passes")));
}
