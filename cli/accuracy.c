/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d accuracy: how far the models of collectives and kernels are from measurements. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/accuracy_kernels.h"
#include "cli/command.h"
#include "plots/accuracy.h"
#include "plots/gnuplot.h"
#include "sim/accuracy.h"
#include "sim/isolate.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/option.h"
#include "support/processors.h"
#include "support/progress.h"

struct config {
    char *output, *data;
};

static const struct s4d_option options[] = {
    {.name = "output",
     .argument = "FOLDER",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, output),
     .help = "write report.md, data.tsv and the plots into this folder"},
    {.name = "data",
     .argument = "FOLDER",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, data),
     .help = "where collectives.csv, gemm.csv, attention.csv and reasons.csv are (default: the "
             "project's sim/measured)"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Options", .options = options},
                                                 {.options = NULL}};

/* One group of ranks is simulated in up to three ways. */
enum way { SHIPPED, HELD_OUT, CONSTANTS, WAYS };
enum { SIZES = 64 };

struct part { /* rows from .. to - 1: of one group size */
    int from, to, fit_ranks;
    bool input;
    enum s4d_op_kind op;
    const struct s4d_algorithm *algorithm;
};
struct job {
    int part;
    enum way way;
};
struct answer {
    struct s4d_measured size[SIZES];
};

struct check {
    struct s4d_accuracy_list list;
    struct s4d_accuracy_kernels kernels;
    struct part *part;
    int n_parts, parts_cap;
    struct job *job;
    int n_jobs, jobs_cap, done;
};

/* The algorithm in parentheses that ends the library's name; NULL: none. */
static int forced(const struct s4d_accuracy_row *row, const struct s4d_algorithm **algorithm,
                  struct s4d_error *err)
{
    const char *open = strchr(row->library, '(');
    *algorithm = NULL;
    if (open == NULL)
        return 0;
    char name[32];
    size_t n = 0;
    for (open++; *open != '\0' && *open != ')' && n + 1 < sizeof name; open++)
        name[n++] = (char)(*open >= 'A' && *open <= 'Z' ? *open - 'A' + 'a' : *open);
    name[n] = '\0';
    *algorithm = s4d_algorithm_find(name);
    if (*algorithm == NULL)
        return s4d_fail(err, S4D_EXIT_DATA, "collectives.csv", "unknown algorithm '%s' in %s", name,
                        row->library);
    return 0;
}

/* Whether the machine's table was made of this group size, and which group size the others are held
 * out against: the middle one. */
static int tables(struct part *part, const struct s4d_accuracy_row *row, struct s4d_error *err)
{
    struct s4d_machine machine;
    int ranks[SIZES];
    if (s4d_machine_load(&machine, row->machine, NULL, 0, err))
        return -1;
    int n =
        s4d_efficiency_ranks(&machine, part->op, row->ranks == row->ranks_per_node, ranks, SIZES);
    for (int i = 0; i < n; i++)
        part->input = part->input || ranks[i] == row->ranks;
    part->fit_ranks = n > 1 ? ranks[(n - 1) / 2] : 0;
    s4d_machine_free(&machine);
    return 0;
}

static int add_part(struct check *c, int from, struct s4d_error *err)
{
    const struct s4d_accuracy_row *row = &c->list.v[from];
    struct part part = {.from = from, .to = s4d_accuracy_group(&c->list, from)};
    part.op = s4d_collective_op(row->op);
    if ((int)part.op == S4D_COLLECTIVE_OPS)
        return s4d_fail(err, S4D_EXIT_DATA, "collectives.csv", "unknown operation '%s'", row->op);
    if (part.to - from > SIZES)
        return s4d_fail(err, S4D_EXIT_DATA, "collectives.csv", "more than %d sizes of one group",
                        (int)SIZES);
    if (forced(row, &part.algorithm, err) || tables(&part, row, err))
        return -1;
    for (enum way way = SHIPPED; way < WAYS; way++)
        if (way == SHIPPED || (way == CONSTANTS && part.input) ||
            (way == HELD_OUT && part.fit_ranks))
            s4d_push(c->job, c->n_jobs, c->jobs_cap, (struct job){c->n_parts, way});
    s4d_push(c->part, c->n_parts, c->parts_cap, part);
    return 0;
}

static int simulate(void *context, int index, void *result, struct s4d_error *err)
{
    const struct check *c = context;
    const struct job *job = &c->job[index];
    const struct part *part = &c->part[job->part];
    const struct s4d_accuracy_row *row = &c->list.v[part->from];
    double bytes[SIZES];
    for (int i = part->from; i < part->to; i++)
        bytes[i - part->from] = c->list.v[i].bytes;
    struct s4d_accuracy_group g = {.machine = row->machine,
                                   .op = part->op,
                                   .algorithm = part->algorithm,
                                   .ranks = row->ranks,
                                   .ranks_per_node = row->ranks_per_node,
                                   .bytes = bytes,
                                   .n = part->to - part->from,
                                   .keep = job->way == SHIPPED     ? S4D_KEEP_ALL
                                           : job->way == CONSTANTS ? S4D_KEEP_NONE
                                                                   : part->fit_ranks};
    return s4d_accuracy_simulate(&g, ((struct answer *)result)->size, err);
}

static void count_done(void *context, int index)
{
    struct check *c = context;
    (void)index;
    s4d_progress("simulating", ++c->done, c->n_jobs);
}

static void describe(struct s4d_accuracy_row *row, const struct s4d_measured *m)
{
    static const char *const protocols[S4D_PROTOCOLS + 1] = {"LL", "LL128", "Simple", ""};
    const struct s4d_cost *cost = &m->cost;
    if (cost->measured)
        snprintf(row->how, sizeof row->how, "the table's %.3g of the links%s", cost->efficiency,
                 cost->extrapolated ? ", extrapolated" : "");
    else
        snprintf(row->how, sizeof row->how, "%s, %s, %.3g of %.3g us latency",
                 s4d_algorithms[m->algorithm]->name, protocols[cost->protocol],
                 cost->latency_s * 1e6, m->time_s * 1e6);
}

static void fill(struct check *c, int index, const struct answer *answer)
{
    const struct job *job = &c->job[index];
    const struct part *part = &c->part[job->part];
    double factor;
    for (int i = part->from; i < part->to; i++) {
        struct s4d_accuracy_row *row = &c->list.v[i];
        const struct s4d_measured *m = &answer->size[i - part->from];
        factor = s4d_collective_bus_factor(part->op, row->ranks);
        double *at[WAYS] = {&row->simulated_Bps, &row->held_out_Bps, &row->constants_Bps};
        *at[job->way] = factor * row->bytes / m->time_s;
        row->input = part->input;
        row->fit_ranks = part->fit_ranks;
        if (job->way == SHIPPED && !part->input)
            row->constants_Bps = row->simulated_Bps;
        if (job->way == (part->input && part->fit_ranks ? HELD_OUT : SHIPPED))
            describe(row, m);
    }
}

static int collectives(struct check *c, struct s4d_error *err)
{
    for (int i = 0; i < c->list.n; i = c->part[c->n_parts - 1].to)
        if (add_part(c, i, err))
            return -1;
    struct answer *answers = s4d_calloc((size_t)c->n_jobs, sizeof *answers);
    struct s4d_error *errors = s4d_calloc((size_t)c->n_jobs, sizeof *errors);
    int failed = s4d_isolated(simulate, c, c->n_jobs, s4d_processors(), answers, sizeof *answers,
                              errors, count_done);
    s4d_progress_end();
    for (int i = 0; i < c->n_jobs; i++) {
        if (errors[i].exit == S4D_EXIT_OK)
            fill(c, i, &answers[i]);
        else if (failed > 0 && err->exit == S4D_EXIT_OK)
            *err = errors[i];
    }
    free(answers);
    free(errors);
    return failed > 0 ? -1 : 0;
}

static int plot_series(const struct check *c, int from, const char *folder, struct s4d_error *err)
{
    char *name = s4d_accuracy_name(&c->list.v[from]),
         *data = s4d_asprintf("%s/%s.tsv", folder, name),
         *stem = s4d_asprintf("%s/%s", folder, name),
         *script = s4d_asprintf("%s/plots/accuracy.gp", s4d_data_folder());
    int rc = s4d_accuracy_blocks(&c->list, from, data, err) || s4d_gnuplot(script, data, stem, err);
    free(name);
    free(data);
    free(stem);
    free(script);
    return rc ? -1 : 0;
}

/* Before anything is simulated. */
static int try_output(const char *folder, struct s4d_error *err)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return s4d_fail(err, S4D_EXIT_OUTPUT, folder, "cannot be made: %s", strerror(errno));
    char *table = s4d_asprintf("%s/data.tsv", folder);
    const struct s4d_output output = {"--output", table};
    int rc = s4d_outputs_check(&output, 1, err);
    free(table);
    return rc;
}

static int write_all(const struct check *c, const char *data, const char *folder,
                     struct s4d_error *err)
{
    char *table = s4d_asprintf("%s/data.tsv", folder),
         *reasons = s4d_asprintf("%s/reasons.csv", data);
    int rc = s4d_accuracy_data(&c->list, table, err) ||
             s4d_accuracy_report(&c->list, &c->kernels, reasons, folder, err);
    for (int i = 0; rc == 0 && i < c->list.n; i = s4d_accuracy_series(&c->list, i))
        rc = plot_series(c, i, folder, err);
    if (rc == 0)
        printf("%s/report.md\n", folder);
    free(table);
    free(reasons);
    return rc ? -1 : 0;
}

static int check(struct check *c, const struct config *config, struct s4d_error *err)
{
    char *data = config->data ? s4d_strdup(config->data)
                              : s4d_asprintf("%s/sim/measured", s4d_data_folder());
    char *file = s4d_asprintf("%s/collectives.csv", data);
    int rc = s4d_accuracy_read(&c->list, file, err) ||
             (config->output && try_output(config->output, err)) || collectives(c, err) ||
             s4d_accuracy_gemms(data, &c->kernels, err) ||
             s4d_accuracy_attention(data, &c->kernels, err);
    if (rc == 0) {
        s4d_accuracy_print(&c->list, &c->kernels, stdout);
        if (config->output)
            rc = write_all(c, data, config->output, err);
    }
    free(data);
    free(file);
    return rc ? -1 : 0;
}

static int run(int argc, char **argv)
{
    struct config config = {0};
    struct check c = {0};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Simulates collectives and kernels that were measured, and says how "
                              "far off the simulation is. What a machine file was fitted on is "
                              "held out.",
                              argc, argv, &config, NULL, &err);
    if (rc == 0)
        rc = check(&c, &config, &err);
    s4d_accuracy_free(&c.list);
    s4d_accuracy_kernels_free(&c.kernels);
    free(c.part);
    free(c.job);
    s4d_options_free(groups, &config);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_accuracy = {
    .name = "accuracy",
    .summary = "how far the models are from measured collectives and kernels",
    .run = run,
    .options = groups,
};
