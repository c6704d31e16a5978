/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_options.h"

#include <stddef.h>
#include <stdio.h>

#include "cli/job_options.h"

#define AT(field) offsetof(struct s4d_run_options, field)
const struct s4d_option s4d_run_options[] = {
    S4D_OPTION_MACHINE(AT(machine)),
    S4D_OPTION_WORKLOAD(AT(workload)),
    S4D_OPTION_GPUS(AT(gpus)),
    S4D_OPTION_SET(AT(set)),
    {.name = "no-fold",
     .type = S4D_OPT_FLAG,
     .offset = AT(no_fold),
     .help = "simulate every GPU instead of one of each kind"},
    {.name = NULL},
};

const struct s4d_option_group s4d_run_groups[] = {
    {.title = "Simulation", .options = s4d_run_options},
    {.title = "Schedule", .options = s4d_schedule_options, .offset = AT(schedule)},
    {.title = "Placement and differences", .options = s4d_scenario_options, .offset = AT(scenario)},
    {.title = NULL},
};

struct s4d_run_options s4d_run_options_default(void)
{
    return (struct s4d_run_options){.schedule = s4d_schedule_options_default()};
}

int s4d_job_given(const char *machine, const char *workload, bool gpus, struct s4d_error *err)
{
    if (!machine) {
        s4d_fail(err, S4D_EXIT_USAGE, "--machine", "expected a machine, not given");
        return s4d_hint(err, "scale4d machines lists those known");
    }
    if (!workload) {
        s4d_fail(err, S4D_EXIT_USAGE, "--workload", "expected a model, not given");
        return s4d_hint(err, "scale4d workloads lists those known");
    }
    return gpus ? 0
                : s4d_fail(err, S4D_EXIT_USAGE, "--gpus",
                           "expected the number of devices, not given");
}

/* What knows no option of its own is about this one. */
static int of_option(struct s4d_error *err, const char *option)
{
    if (err->where[0] == '\0')
        snprintf(err->where, sizeof err->where, "%s", option);
    return -1;
}

int s4d_run_inputs_load(struct s4d_run_inputs *in, struct s4d_run_options *o, struct s4d_error *err)
{
    struct s4d_simulation *s = &in->simulation;
    *in = (struct s4d_run_inputs){.loaded = false};
    *s = (struct s4d_simulation){.machine = &in->machine,
                                 .scenario = &in->scenario,
                                 .workload = &in->workload,
                                 .gpus = o->gpus,
                                 .fold = !o->no_fold,
                                 .workers = 1};
    if (s4d_job_given(o->machine, o->workload, o->gpus > 0, err) ||
        s4d_schedule_options_resolve(&o->schedule, o->gpus, &s->grid, &s->grid_auto, err))
        return -1;
    s->options = o->schedule.options;
    if (s4d_scenario_load(&in->machine, &in->scenario, o->machine, &o->set, &o->scenario, err))
        return of_option(err, "--machine");
    if (s4d_workload_load(&in->workload, o->workload, err)) {
        s4d_machine_free(&in->machine);
        s4d_scenario_free(&in->scenario);
        return of_option(err, "--workload");
    }
    in->loaded = true;
    return 0;
}

void s4d_run_inputs_free(struct s4d_run_inputs *in)
{
    if (!in->loaded)
        return;
    s4d_machine_free(&in->machine);
    s4d_scenario_free(&in->scenario);
    s4d_workload_free(&in->workload);
    in->loaded = false;
}
