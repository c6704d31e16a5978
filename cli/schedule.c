/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d schedule: the program of one rank, as text or JSON. */
#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/job_options.h"
#include "schedule/build.h"
#include "schedule/check.h"
#include "schedule/plan.h"
#include "schedule/print.h"
#include "schedule/schedule_options.h"
#include "support/record.h"
#include "workloads/workload.h"

struct config {
    char *workload;
    int gpus;
    bool json;
    struct s4d_schedule_options schedule;
};

static const struct s4d_option own_options[] = {
    S4D_OPTION_WORKLOAD(offsetof(struct config, workload)),
    S4D_OPTION_GPUS(offsetof(struct config, gpus)),
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, json),
     .help = "the whole program as one JSON object"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {
    {"Options", own_options, 0},
    {"Schedule options", s4d_schedule_options, offsetof(struct config, schedule)},
    {0},
};

static int make_program(struct config *c, struct s4d_program *p, struct s4d_error *err)
{
    struct s4d_grid grid;
    bool automatic;
    struct s4d_workload w;
    if (!c->workload)
        return s4d_fail(err, S4D_EXIT_USAGE, "--workload", "expected a model, not given");
    if (c->gpus == 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--gpus", "expected the number of ranks, not given");
    if (s4d_schedule_options_resolve(&c->schedule, c->gpus, &grid, &automatic, err) != 0)
        return -1;
    if (automatic) {
        s4d_fail(err, S4D_EXIT_USAGE, "--grid", "expected GXxGYxGZxGDATA, got 'auto'");
        return s4d_hint(err, "scale4d simulate --grid auto finds a grid for a machine");
    }
    if (c->schedule.options.micro_batch == 0)
        c->schedule.options.micro_batch = 1;
    if (s4d_workload_load(&w, c->workload, err) != 0)
        return -1;
    int rc = s4d_build(p, &w.model, &grid, &c->schedule.options, err);
    s4d_workload_free(&w);
    if (rc != 0)
        return rc;
    s4d_plan(p);
    rc = s4d_check(p, err);
    if (rc != 0)
        s4d_program_free(p);
    return rc;
}

static int show(const struct config *c, int argc, char **argv, struct s4d_error *err)
{
    struct s4d_program p;
    struct config copy = *c;
    if (make_program(&copy, &p, err) != 0)
        return -1;
    int rc = 0;
    if (c->json) {
        json_t *record = s4d_program_json(&p);
        json_object_set_new(record, "provenance", s4d_provenance(argc, argv));
        rc = s4d_record_write(record, stdout, err);
        json_decref(record);
    } else {
        printf("# scale4d %s schedule: what each rank does in one iteration\n", s4d_version);
        s4d_print_program(&p, stdout);
        printf("# program_check: OK\n");
    }
    s4d_program_free(&p);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config c = {.schedule = s4d_schedule_options_default()};
    struct s4d_error err;
    int rc = s4d_options_argv(groups,
                              "Prints the program: every operation that one rank performs "
                              "in one iteration.",
                              argc, argv, &c, NULL, &err);
    if (rc == 0)
        rc = show(&c, argc, argv, &err);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_schedule = {
    .name = "schedule",
    .summary = "print the operations of one training iteration",
    .run = run,
    .options = groups,
};
