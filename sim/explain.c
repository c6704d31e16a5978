/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/explain.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/timeline.h"
#include "sim/critical_path.h"
#include "sim/link_use.h"
#include "support/memory.h"
#include "support/replace.h"

/* One observer for the trace and the links. */
struct watch {
    struct s4d_trace trace;
    struct s4d_link_uses uses;
};

static void on_started(void *context, int rank_class, int op, int iteration, double start_s)
{
    s4d_trace_started(&((struct watch *)context)->trace, rank_class, op, iteration, start_s);
}

static void on_ended(void *context, int rank_class, int op, int iteration, double end_s)
{
    s4d_trace_ended(&((struct watch *)context)->trace, rank_class, op, iteration, end_s);
}

static void on_flow(void *context, const struct s4d_flow_event *event)
{
    s4d_link_uses_flow(&((struct watch *)context)->uses, event);
}

static void on_rates(void *context, const struct s4d_engine *engine)
{
    s4d_link_uses_rates(&((struct watch *)context)->uses, engine);
}

static void on_window(void *context, bool open, double now_s)
{
    struct watch *w = context;
    s4d_trace_window(&w->trace, open, now_s);
    s4d_link_uses_window(&w->uses, open, now_s);
}

/* --- the summary --------------------------------------------------------------------------- */

struct part {
    json_t *what; /* new reference */
    double time_s;
    int steps; /* 0: not counted */
    int first; /* its place among the parts as they were first met */
};

struct parts {
    struct part *v;
    int n, cap;
};

static void add_part(struct parts *parts, json_t *what, double time_s, int steps)
{
    for (int i = 0; i < parts->n; i++)
        if (json_equal(parts->v[i].what, what)) {
            parts->v[i].time_s += time_s;
            parts->v[i].steps += steps;
            json_decref(what);
            return;
        }
    s4d_push(parts->v, parts->n, parts->cap, (struct part){what, time_s, steps, parts->n});
}

static int longest_first(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return x->time_s != y->time_s ? (x->time_s < y->time_s) - (x->time_s > y->time_s)
                                  : x->first - y->first;
}

/* The parts as an array, longest first; frees them. Equal times keep the order of the path. */
static json_t *take_parts(struct parts *parts)
{
    json_t *array = json_array();
    if (parts->n > 0)
        qsort(parts->v, (size_t)parts->n, sizeof *parts->v, longest_first);
    for (int i = 0; i < parts->n; i++) {
        json_t *what = parts->v[i].what;
        json_object_set_new(what, "time_s", json_real(parts->v[i].time_s));
        if (parts->v[i].steps > 0)
            json_object_set_new(what, "steps", json_integer(parts->v[i].steps));
        json_array_append_new(array, what);
    }
    free(parts->v);
    *parts = (struct parts){0};
    return array;
}

static json_t *path_summary(const struct s4d_critical_path *path, const struct s4d_trace *t)
{
    const struct s4d_program *p = t->program;
    struct parts streams = {0}, ops = {0}, ranks = {0};
    for (int i = 0; i < path->n; i++) {
        const struct s4d_op *op = &p->ops[path->step[i].op];
        double time_s = path->step[i].end_s - path->step[i].start_s;
        const char *stream = s4d_streams[op->stream].name;
        const struct s4d_rank_class *rank = &t->system->ranks[path->step[i].rank_class];
        add_part(&ranks,
                 json_pack("{s:i, s:i}", "rank", rank->representative, "members", rank->members),
                 time_s, 1);
        add_part(&streams, json_pack("{s:s}", "stream", stream), time_s, 1);
        add_part(&ops,
                 json_pack("{s:s, s:s, s:s, s:s}", "phase", s4d_phase_names[op->label.phase], "op",
                           s4d_op_kinds[op->kind].name, "name",
                           op->label.name ? op->label.name : "", "stream", stream),
                 time_s, 1);
    }
    json_t *by_stream = take_parts(&streams), *by_op = take_parts(&ops),
           *by_rank = take_parts(&ranks);
    return json_pack("{s:i, s:o, s:o, s:o}", "steps", path->n, "by_stream", by_stream, "by_op",
                     by_op, "by_rank", by_rank);
}

static json_t *kind_names(const struct s4d_link_uses *u, uint32_t kinds)
{
    json_t *names = json_array();
    for (int i = 0; i < u->n_kinds; i++)
        if (kinds >> i & 1)
            json_array_append_new(names, json_string(u->kind[i]));
    return names;
}

/* Groups of two or more: those that move anything. */
static int groups_of_stream(const struct s4d_system *s, enum s4d_stream stream)
{
    int groups = 0;
    for (int i = 0; i < s->n_groups; i++)
        if (s->groups[i].stream == stream && s->groups[i].by_algorithm[0].shape.members > 1)
            groups += s->groups[i].groups;
    return groups;
}

static json_t *bounds_summary(const struct s4d_link_uses *u)
{
    json_t *array = json_array();
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        int groups = groups_of_stream(u->system, (enum s4d_stream)stream);
        struct parts links = {0};
        for (int i = 0; i < u->n_bounds; i++)
            if ((int)u->bound[i].stream == stream)
                add_part(&links, json_pack("{s:o}", "links", kind_names(u, u->bound[i].kinds)),
                         u->bound[i].group_s / groups, 0);
        if (links.n > 0)
            json_array_append_new(array,
                                  json_pack("{s:s, s:i, s:o}", "stream", s4d_streams[stream].name,
                                            "groups", groups, "by_links", take_parts(&links)));
    }
    return array;
}

/* --- the files ----------------------------------------------------------------------------- */

static void write_head(const struct s4d_trace *t, const char *about, FILE *out)
{
    const struct s4d_program *p = t->program;
    const struct s4d_machine *m = t->system->cluster->machine;
    fprintf(out,
            "%s# machine %s (%s)  workload %s  grid %dx%dx%dx%d (GXxGYxGZxGDATA)  global batch %d  "
            "micro-batch %d  iteration %.9g s\n",
            about ? about : "", m->name, m->hash, p->model.name, p->grid.size[S4D_X],
            p->grid.size[S4D_Y], p->grid.size[S4D_Z], p->grid.size[S4D_DATA],
            p->options.global_batch, p->options.micro_batch, t->close_s - t->open_s);
}

static int write_links(const struct s4d_link_uses *u, const struct s4d_trace *t,
                       const struct s4d_explain *wanted, struct s4d_error *err)
{
    struct s4d_replacement to;
    if (!wanted->links)
        return 0;
    if (s4d_replace_open(&to, wanted->links, err))
        return -1;
    write_head(t, wanted->about, to.out);
    s4d_link_uses_write(u, to.out);
    return s4d_replace_close(&to, 0, err);
}

static int write_path(const struct s4d_critical_path *path, const struct s4d_trace *t,
                      const struct s4d_explain *wanted, struct s4d_error *err)
{
    struct s4d_replacement to;
    if (!wanted->critical_path)
        return 0;
    if (s4d_replace_open(&to, wanted->critical_path, err))
        return -1;
    write_head(t, wanted->about, to.out);
    s4d_critical_path_write(path, t, to.out);
    return s4d_replace_close(&to, 0, err);
}

static int write_timeline(const struct s4d_trace *t, const struct s4d_explain *wanted,
                          struct s4d_error *err)
{
    struct s4d_timeline *out;
    if (!wanted->timeline)
        return 0;
    if (s4d_timeline_open(&out, wanted->timeline, err))
        return -1;
    for (int i = 0; i < wanted->n_ranks; i++) {
        int rank = wanted->rank[i], class = t->system->class_of_rank[rank];
        s4d_timeline_rank(out, t->program, rank, ", simulated");
        for (int iteration = 0; iteration < 2; iteration++)
            for (int op = 0; op < t->program->n_ops; op++) {
                const struct s4d_span *span = s4d_trace_span(t, class, iteration, op);
                s4d_timeline_op(out, t->program, rank, op, iteration, span->start_s, span->end_s);
            }
    }
    return s4d_timeline_close(out, err);
}

static int write_all(const struct watch *w, const struct s4d_program_index *index,
                     const struct s4d_explain *wanted, struct s4d_error *err)
{
    struct s4d_critical_path path;
    s4d_critical_path_find(&path, &w->trace, index);
    int rc = write_links(&w->uses, &w->trace, wanted, err) ||
             write_path(&path, &w->trace, wanted, err) || write_timeline(&w->trace, wanted, err);
    if (rc == 0 && wanted->summary) {
        json_t *summary = json_pack("{s:o, s:o}", "critical_path", path_summary(&path, &w->trace),
                                    "bounds", bounds_summary(&w->uses));
        if (json_dumpf(summary, wanted->summary, JSON_REAL_PRECISION(17)) != 0 ||
            fflush(wanted->summary) != 0)
            rc = s4d_fail(err, S4D_EXIT_OUTPUT, "--explain", "cannot be written");
        json_decref(summary);
    }
    s4d_critical_path_free(&path);
    return rc ? -1 : 0;
}

static int check_told(const struct s4d_program *p, struct s4d_error *err)
{
    if (!p->stages)
        return 0;
    s4d_fail(err, S4D_EXIT_DATA, "explain",
             "links, critical path, timeline and summary are of one program that all ranks run, "
             "and this is a pipe of %d stages with programs of their own",
             p->grid.size[S4D_PIPE]);
    return s4d_hint(err, "ask for none of them, or watch with an s4d_observer");
}

int s4d_execute_explained(const struct s4d_system *system, const struct s4d_program *program,
                          const struct s4d_kernels *kernels, const struct s4d_explain *wanted,
                          struct s4d_run *run, struct s4d_error *err)
{
    struct watch w;
    struct s4d_observer observer = {.ended = on_ended,
                                    .context = &w,
                                    .started = on_started,
                                    .flow = on_flow,
                                    .rates = on_rates,
                                    .window = on_window};
    if (check_told(program, err))
        return -1;
    s4d_trace_create(&w.trace, system, program);
    s4d_link_uses_create(&w.uses, system, program);
    int rc = s4d_execute_observed(system, program, kernels, &observer, run, err);
    if (rc == 0) {
        struct s4d_program_index index =
            s4d_program_index_make(program, kernels, &system->cluster->rates);
        rc = write_all(&w, &index, wanted, err);
        s4d_program_index_free(&index);
    }
    s4d_link_uses_free(&w.uses);
    s4d_trace_free(&w.trace);
    return rc;
}
