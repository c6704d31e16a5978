/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/program.h" /* for: s4d_streams */
#include "support/file.h"
#include "support/memory.h"
#include "support/record.h"
#include "support/units.h" /* for: s4d_parse_int */

#define AT(field) offsetof(struct s4d_explain_options, field)
const struct s4d_option s4d_explain_options[] = {
    {.name = "explain",
     .type = S4D_OPT_FLAG,
     .offset = AT(explain),
     .help = "add what bounds the iteration: its critical path by stream and op, and the links "
             "that hold up each stream; and the terms of the analytical models beside it"},
    {.name = "critical-path",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(critical_path),
     .help = "write the critical path, an op a line (TSV)"},
    {.name = "links",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(links),
     .help = "write bytes, busy time, mean and peak use of every link (TSV); scale4d links draws "
             "it"},
    {.name = "timeline",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(timeline),
     .help = "write every op's start and end, for ui.perfetto.dev"},
    {.name = "timeline-ranks",
     .argument = "LIST",
     .type = S4D_OPT_TEXT,
     .offset = AT(timeline_ranks),
     .help = "the ranks of the timeline, as 0,5 (default: 0)"},
    {.name = NULL},
};

static int read_ranks(struct s4d_explaining *e, const char *list, int gpus, struct s4d_error *err)
{
    char *copy = s4d_strdup(list), *rest = copy, *text;
    int rc = 0, cap = 0;
    while (rc == 0 && (text = strsep(&rest, ",")) != NULL) {
        int64_t rank = 0;
        rc = s4d_parse_int(text, 0, gpus - 1, &rank, err);
        for (int i = 0; i < e->wanted.n_ranks && rc == 0; i++)
            if (e->ranks[i] == rank)
                rc = s4d_fail(err, S4D_EXIT_USAGE, "", "rank %d twice", (int)rank);
        s4d_push(e->ranks, e->wanted.n_ranks, cap, (int)rank);
    }
    free(copy);
    if (rc == 0)
        return 0;
    err->exit = S4D_EXIT_USAGE;
    snprintf(err->where, sizeof err->where, "--timeline-ranks");
    return s4d_hint(err, "ranks from 0 to %d, with commas between them", gpus - 1);
}

static char *about_text(int argc, char **argv)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    S4D_ASSERT(out, "open_memstream: %s", strerror(errno));
    json_t *provenance = s4d_provenance(argc, argv);
    s4d_provenance_print(provenance, out);
    json_decref(provenance);
    fclose(out);
    return text;
}

int s4d_explain_begin(struct s4d_explaining *e, const struct s4d_explain_options *o, int gpus,
                      int argc, char **argv, struct s4d_error *err)
{
    *e = (struct s4d_explaining){.any = o->explain || o->links || o->critical_path || o->timeline};
    if (o->timeline_ranks && !o->timeline)
        return s4d_fail(err, S4D_EXIT_USAGE, "--timeline-ranks", "given without --timeline");
    if (!e->any)
        return 0;
    const struct s4d_output outputs[] = {
        {"--links", o->links}, {"--critical-path", o->critical_path}, {"--timeline", o->timeline}};
    if (s4d_outputs_check(outputs, 3, err))
        return -1;
    e->about = about_text(argc, argv);
    e->wanted = (struct s4d_explain){.links = o->links,
                                     .critical_path = o->critical_path,
                                     .timeline = o->timeline,
                                     .about = e->about};
    if (read_ranks(e, o->timeline_ranks ? o->timeline_ranks : "0", gpus, err))
        return -1;
    e->wanted.rank = e->ranks;
    if (!o->explain)
        return 0;
    e->wanted.summary = tmpfile();
    if (!e->wanted.summary)
        return s4d_fail(err, S4D_EXIT_OUTPUT, "--explain", "no temporary file: %s",
                        strerror(errno));
    return 0;
}

json_t *s4d_explain_summary(struct s4d_explaining *e)
{
    if (!e->wanted.summary)
        return NULL;
    json_error_t why;
    rewind(e->wanted.summary);
    e->summary = json_loadf(e->wanted.summary, 0, &why);
    S4D_ASSERT(e->summary, "summary: %s", why.text);
    return e->summary;
}

void s4d_explain_end(struct s4d_explaining *e)
{
    if (e->wanted.summary)
        fclose(e->wanted.summary);
    json_decref(e->summary);
    free(e->about);
    free(e->ranks);
    *e = (struct s4d_explaining){.any = false};
}

/* --- tables -------------------------------------------------------------------------------- */

enum { ROWS = 12 };

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *t = json_string_value(json_object_get(object, key));
    return t ? t : "";
}

/* Which GPUs it runs through: with a straggler, mostly that one. */
static void print_ranks(const json_t *ranks, double total_s, FILE *out)
{
    enum { MOST = 4 };
    size_t i;
    json_t *row;
    fputs("# it runs through", out);
    json_array_foreach((json_t *)ranks, i, row)
    {
        if (i == MOST)
            break;
        fprintf(out, "%s rank %.0f", i ? "," : "", number(row, "rank"));
        if (number(row, "members") > 1)
            fprintf(out, " (as %.0f others would)", number(row, "members") - 1);
        fprintf(out, " for %.1f %%", 100 * number(row, "time_s") / total_s);
    }
    if (json_array_size(ranks) > MOST)
        fprintf(out, ", %zu more", json_array_size(ranks) - MOST);
    fputc('\n', out);
}

static void print_path(const json_t *path, double total_s, FILE *out)
{
    size_t i;
    json_t *row;
    fprintf(out,
            "\n# critical path: %.0f steps, each started when the one before it ended; they sum to "
            "the iteration\n%-12s %12s %8s %8s\n%-12s %12s %8s %8s\n",
            number(path, "steps"), "stream", "time", "share", "steps", "", "(ms)", "(%)", "");
    json_array_foreach(json_object_get(path, "by_stream"), i, row)
        fprintf(out, "%-12s %12.3f %8.2f %8.0f\n", text(row, "stream"), 1e3 * number(row, "time_s"),
                100 * number(row, "time_s") / total_s, number(row, "steps"));
    print_ranks(json_object_get(path, "by_rank"), total_s, out);
    const json_t *ops = json_object_get(path, "by_op");
    fprintf(out, "\n%-10s %-19s %-20s %-12s %12s %8s %8s\n%-10s %-19s %-20s %-12s %12s %8s %8s\n",
            "phase", "op", "name", "stream", "time", "share", "steps", "", "", "", "", "(ms)",
            "(%)", "");
    json_array_foreach((json_t *)ops, i, row)
    {
        if (i == ROWS)
            break;
        fprintf(out, "%-10s %-19s %-20s %-12s %12.3f %8.2f %8.0f\n", text(row, "phase"),
                text(row, "op"), text(row, "name"), text(row, "stream"),
                1e3 * number(row, "time_s"), 100 * number(row, "time_s") / total_s,
                number(row, "steps"));
    }
    if (json_array_size(ops) > ROWS)
        fprintf(out, "# %zu more kinds of ops\n", json_array_size(ops) - ROWS);
}

static void print_links(const json_t *links, FILE *out)
{
    size_t i;
    json_t *name;
    if (json_array_size(links) == 0)
        fputs("latency", out);
    json_array_foreach((json_t *)links, i, name)
        fprintf(out, "%s%s", i ? ", " : "", json_string_value(name));
    fputc('\n', out);
}

static void print_bounds(const json_t *bounds, double total_s, FILE *out)
{
    size_t i, k;
    json_t *row, *bound;
    fprintf(out,
            "\n# what holds up each stream's collectives: the links on their way that are full; "
            "mean over its groups\n%-12s %8s %12s %8s  %s\n%-12s %8s %12s %8s\n",
            "stream", "groups", "time", "share", "full links", "", "", "(ms)", "(%)");
    json_array_foreach((json_t *)bounds, i, row)
        json_array_foreach(json_object_get(row, "by_links"), k, bound)
    {
        fprintf(out, "%-12s %8.0f %12.3f %8.2f  ", text(row, "stream"), number(row, "groups"),
                1e3 * number(bound, "time_s"), 100 * number(bound, "time_s") / total_s);
        print_links(json_object_get(bound, "links"), out);
    }
    if (json_array_size(bounds) == 0)
        fprintf(out, "# no group of two or more communicates\n");
}

/* The communicating stream with most time on the critical path, and what holds it up most. */
static void print_verdict(const json_t *explain, double total_s, FILE *out)
{
    size_t i;
    json_t *row;
    const char *worst = NULL, *compute = s4d_streams[S4D_STREAM_COMPUTE].name;
    double worst_s = 0, compute_s = 0;
    json_array_foreach(json_object_get(json_object_get(explain, "critical_path"), "by_stream"), i,
                       row)
    {
        if (strcmp(text(row, "stream"), compute) == 0) {
            compute_s = number(row, "time_s");
        } else if (!worst) {
            worst = text(row, "stream");
            worst_s = number(row, "time_s");
        }
    }
    fprintf(out, "# computing is %.1f %% of the critical path", 100 * compute_s / total_s);
    if (worst)
        fprintf(out, ", stream %s %.1f %%", worst, 100 * worst_s / total_s);
    json_array_foreach(json_object_get(explain, "bounds"), i,
                       row) if (worst && strcmp(text(row, "stream"), worst) == 0)
    {
        fputs(", held up most by ", out);
        print_links(json_object_get(json_array_get(json_object_get(row, "by_links"), 0), "links"),
                    out);
        return;
    }
    fputc('\n', out);
}

void s4d_explain_print(const json_t *record, FILE *out)
{
    const json_t *explain = json_object_get(record, "explain");
    double total_s = number(record, "iteration_time_s");
    print_path(json_object_get(explain, "critical_path"), total_s, out);
    print_bounds(json_object_get(explain, "bounds"), total_s, out);
    print_verdict(explain, total_s, out);
    s4d_terms_print(json_object_get(explain, "model"), out);
}
