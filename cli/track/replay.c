/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/track/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/schedule_options.h"
#include "sim/collective/measure.h"
#include "sim/fabric.h"
#include "sim/isolate.h"
#include "sim/simulate_one.h"
#include "support/file.h" /* for: s4d_is_path */
#include "support/memory.h"
#include "support/quote.h"

int s4d_replay_options_check(const struct s4d_replay_options *o, struct s4d_error *err)
{
    struct s4d_machine machine;
    struct s4d_workload workload;
    for (int i = 0; i < o->workloads.n; i++) {
        if (s4d_workload_load(&workload, o->workloads.v[i], err))
            return -1;
        s4d_workload_free(&workload);
    }
    if (!o->machine)
        return 0;
    if (s4d_machine_load(&machine, o->machine, NULL, 0, err))
        return -1;
    s4d_machine_free(&machine);
    return 0;
}

/* --- inputs --------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* A record's inputs under the keys of the option table; two of them are said in other words. */
static char *options_yaml(const json_t *record)
{
    static const char *const keys[] = {
        "grid",    "rank_order",   "global_batch", "micro_batch",     "recompute",
        "overlap", "cache_layers", "precision",    "gradient_reduce", "clip_norm"};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    S4D_ASSERT(out != NULL, "no memory");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *v = json_object_get(record, keys[i]);
        if (!json_is_string(v) && !json_is_number(v))
            continue;
        fprintf(out, "%s: ", keys[i]);
        json_dumpf(v, out, JSON_ENCODE_ANY);
        fprintf(out, "\n");
    }
    const char *type = text_of(record, "gradient_type");
    if (type)
        fprintf(out, "gradient_type: %s\n", strcmp(type, "f32") == 0 ? "f32" : "compute");
    fprintf(out, "loss_scaling: %s\n",
            json_is_true(json_object_get(record, "loss_scaling")) ? "on" : "off");
    fclose(out);
    return text;
}

static int read_options(struct s4d_simulation *s, const json_t *record, struct s4d_error *err)
{
    static const struct s4d_option_group groups[] = {{.options = s4d_schedule_options},
                                                     {.options = NULL}};
    struct s4d_schedule_options o = s4d_schedule_options_default();
    struct s4d_yaml_node *root;
    char *text = options_yaml(record);
    int rc = s4d_yaml_parse("record", text, strlen(text), &root, err);
    s->gpus = (int)json_integer_value(json_object_get(record, "gpus"));
    if (rc == 0) {
        rc = s4d_options_yaml(groups, root, NULL, &o, err);
        s4d_yaml_free(root);
    }
    if (rc == 0)
        rc = s4d_schedule_options_resolve(&o, s->gpus, &s->grid, &s->grid_auto, err);
    if (rc == 0 && s->grid_auto)
        rc = s4d_fail(err, S4D_EXIT_DATA, "grid", "expected sizes, found auto");
    s->options = o.options;
    free(text);
    return rc;
}

/* Of the files the one with the record's model: its name, and where the record says it, content. */
static bool find_workload(struct s4d_workload *w, const struct s4d_texts *files, const char *name,
                          const char *hash)
{
    struct s4d_error ignored;
    for (int i = 0; i < files->n; i++) {
        if (s4d_workload_load(w, files->v[i], &ignored))
            continue;
        if (strcmp(w->model.name, name) == 0 && (!hash || strcmp(hash, w->hash) == 0))
            return true;
        s4d_workload_free(w);
    }
    return false;
}

static int read_workload(struct s4d_workload *w, const json_t *record,
                         const struct s4d_texts *files, struct s4d_error *err)
{
    const json_t *workload = json_object_get(record, "workload");
    const char *name = text_of(workload, "name"), *hash = text_of(workload, "hash");
    name = name ? name : "";
    if (find_workload(w, files, name, hash))
        return 0;
    /* Nobody who writes a record chooses a file that is read here, or a pipe that is waited for. */
    const char *ending = strrchr(name, '.');
    if (s4d_is_path(name) || (ending && strcmp(ending, ".json") == 0)) {
        s4d_fail(err, S4D_EXIT_DATA, "", "unknown workload %s", s4d_quote(name).text);
        return s4d_hint(err, "--workload FILE names it");
    }
    if (s4d_workload_load(w, name, err))
        return -1;
    if (!hash || strcmp(hash, w->hash) == 0)
        return 0;
    s4d_fail(err, S4D_EXIT_DATA, "workload", "%s is another one now (%s) than the record's (%s)",
             s4d_quote(name).text, w->hash, s4d_quote(hash).text);
    s4d_workload_free(w);
    return -1;
}

/* --- the machine ---------------------------------------------------------------------------- */

/* Nominal: computing and collectives are set to what was measured, these numbers say only how times
 * go with sizes. Assumed: a device moves a byte of memory in the time of 20 FLOPs and a byte over a
 * link in that of 1000, and a message takes 5 us. */
enum { DEVICES_MOST = 64 }; /* of a node of a machine in a line */
static int make_machine(struct s4d_machine *m, const struct s4d_night_rates *like, int gpus,
                        struct s4d_error *err)
{
    double flops_per_s = isfinite(like->gemm_flops_per_s) ? like->gemm_flops_per_s : 1e12;
    int per_node =
        like->ranks_per_node > 0 && like->ranks_per_node < gpus ? like->ranks_per_node : gpus;
    if (per_node > DEVICES_MOST) /* ranks of a host with many cores: each on the switch */
        per_node = 1;
    int nodes = (gpus - 1) / per_node + 1;
    char line[400], link[64] = "";
    if (per_node > 1)
        snprintf(link, sizeof link, ",link=%.6fMB/s", flops_per_s / 1000 / 1e6);
    snprintf(line, sizeof line,
             "synthetic:topology=single-switch,nodes=%d,devices_per_node=%d,nic=%.6fMB/s,"
             "latency=5us,peak=%.6fGFLOP/s,memory_bandwidth=%.6fMB/s%s",
             nodes, per_node, flops_per_s / 1000 / 1e6, flops_per_s / 1e9, flops_per_s / 20 / 1e6,
             link);
    return s4d_machine_load(m, line, NULL, 0, err);
}

static int find_machine(struct s4d_replay *r, const json_t *record, const char *machine,
                        const struct s4d_night_rates *like, struct s4d_error *err)
{
    const char *name = machine ? machine : text_of(json_object_get(record, "machine"), "name");
    r->made = name == NULL;
    if (r->made)
        return make_machine(&r->machine, like, r->simulation.gpus, err);
    if (!machine && s4d_is_path(name)) {
        s4d_fail(err, S4D_EXIT_DATA, "", "unknown machine %s", s4d_quote(name).text);
        return s4d_hint(err, "--machine FILE names it");
    }
    if (s4d_machine_load(&r->machine, name, NULL, 0, err))
        return -1;
    if (s4d_fabric_check(&r->machine, err) == 0)
        return 0;
    s4d_machine_free(&r->machine);
    return -1;
}

/* --- parts alone ---------------------------------------------------------------------------- */

/* All calls of one collective of a stream, by size. */
struct calls {
    enum s4d_stream stream;
    enum s4d_op_kind kind;
    double *bytes;
    int *count;
    int n, cap, cap_count;
};
struct all_calls {
    const struct s4d_replay *r;
    struct calls *v;
    int n, cap;
};

static void count_call(struct all_calls *all, const struct s4d_op *op)
{
    double bytes = (double)s4d_collective_bytes(&op->c, op->kind);
    int i = 0, k = 0;
    while (i < all->n && (all->v[i].stream != op->stream || all->v[i].kind != op->kind))
        i++;
    if (i == all->n)
        s4d_push(all->v, all->n, all->cap, (struct calls){.stream = op->stream, .kind = op->kind});
    struct calls *c = &all->v[i];
    while (k < c->n && c->bytes[k] != bytes)
        k++;
    if (k == c->n) {
        int n = c->n;
        s4d_push(c->count, n, c->cap_count, 0);
        s4d_push(c->bytes, c->n, c->cap, bytes);
    }
    c->count[k]++;
}

static void count_ops(struct s4d_replay *r, const struct s4d_program *p, struct all_calls *all)
{
    struct s4d_kernels kernels = {.machine = &r->machine};
    for (int i = 0; i < p->n_ops; i++) {
        const struct s4d_op *op = &p->ops[i];
        enum s4d_op_class class = s4d_op_kinds[op->kind].op_class;
        if (class != S4D_CLASS_COLLECTIVE)
            r->class_s[class] += s4d_kernel_time_s(&kernels, p, op);
        else if (op->c.collective.members > 1)
            count_call(all, op);
        r->gemm_flops += op->kind == S4D_OP_GEMM ? op->flops : 0;
    }
}

static int measure(void *context, int index, void *result, struct s4d_error *err)
{
    const struct all_calls *all = context;
    const struct calls *c = &all->v[index];
    const struct s4d_simulation *s = &all->r->simulation;
    const struct s4d_measurement m = {
        .machine = s->machine, .op = c->kind, .grid = s->grid, .stream = c->stream, .fold = true};
    struct s4d_measured_system system;
    struct s4d_measured *measured = s4d_calloc((size_t)c->n, sizeof *measured);
    int rc = s4d_measure_collective(&m, c->bytes, c->n, measured, &system, err);
    double time_s = 0;
    for (int i = 0; i < c->n && rc == 0; i++)
        time_s += c->count[i] * measured[i].time_s;
    free(measured);
    memcpy(result, &time_s, sizeof time_s);
    return rc;
}

static int measure_all(struct s4d_replay *r, const struct all_calls *all,
                       const double bus_bytes[S4D_STREAMS], struct s4d_error *err)
{
    double sum_s[S4D_STREAMS] = {0}, *time_s = s4d_calloc((size_t)all->n + 1, sizeof *time_s);
    struct s4d_error *errors = s4d_calloc((size_t)all->n + 1, sizeof *errors);
    int failed = s4d_isolated(measure, (void *)all, all->n, r->simulation.workers, time_s,
                              sizeof *time_s, errors, NULL);
    for (int i = 0; i < all->n; i++) {
        sum_s[all->v[i].stream] += time_s[i];
        if (errors[i].exit != S4D_EXIT_OK)
            *err = errors[i];
    }
    for (int s = 0; s < S4D_STREAMS; s++)
        r->busbw_Bps[s] = sum_s[s] > 0 ? bus_bytes[s] / sum_s[s] : 0;
    free(time_s);
    free(errors);
    return failed ? -1 : 0;
}

static int take_apart(struct s4d_replay *r, struct s4d_error *err)
{
    struct s4d_program program;
    struct s4d_result result;
    struct all_calls all = {.r = r};
    if (s4d_simulation_check(&r->simulation, err) ||
        s4d_plan_grid(&r->simulation, &r->simulation.grid, &program, &result, err))
        return -1;
    r->simulation.options.micro_batch = result.micro_batch;
    count_ops(r, &program, &all);
    s4d_program_free(&program);
    int rc = measure_all(r, &all, result.bus_bytes, err);
    for (int i = 0; i < all.n; i++) {
        free(all.v[i].bytes);
        free(all.v[i].count);
    }
    free(all.v);
    return rc;
}

int s4d_replay_open(struct s4d_replay *r, const json_t *record, const struct s4d_night_rates *like,
                    const struct s4d_replay_options *o, struct s4d_error *err)
{
    *r = (struct s4d_replay){.made = false};
    r->simulation = (struct s4d_simulation){
        .machine = &r->machine, .workload = &r->workload, .fold = true, .workers = o->workers};
    if (read_options(&r->simulation, record, err) ||
        read_workload(&r->workload, record, &o->workloads, err))
        return -1;
    if (find_machine(r, record, o->machine, like, err)) {
        s4d_workload_free(&r->workload);
        return -1;
    }
    if (take_apart(r, err) == 0)
        return 0;
    s4d_replay_free(r);
    return -1;
}

void s4d_replay_free(struct s4d_replay *r)
{
    s4d_machine_free(&r->machine);
    s4d_workload_free(&r->workload);
}

/* --- states --------------------------------------------------------------------------------- */

static double over(double simulated, double measured)
{
    return simulated > 0 && isfinite(measured) ? simulated / measured : 1;
}

struct s4d_night_state s4d_replay_state(const struct s4d_replay *r, const struct s4d_night_rates *m)
{
    struct s4d_night_state state = {.slow = m->slowest.host[0] ? m->slowest.part : 1,
                                    .slow_rank = m->slowest.rank,
                                    .slow_is_rank = m->slowest.is_rank};
    s4d_rates_plain(&state.rates);
    /* Means over ranks hold the slowest as well; that of the products says how much. */
    double gemm_s = r->gemm_flops / m->gemm_flops_per_s,
           mean = gemm_s > 0 && isfinite(m->gemm_s) ? m->gemm_s / gemm_s : 1;
    double *class = state.rates.op_class;
    class[S4D_CLASS_GEMM] = over(r->class_s[S4D_CLASS_GEMM], gemm_s);
    class[S4D_CLASS_ATTENTION] = over(r->class_s[S4D_CLASS_ATTENTION], m->attention_s / mean);
    class[S4D_CLASS_KERNEL] = over(r->class_s[S4D_CLASS_KERNEL], m->kernels_s / mean);
    for (int s = 0; s < S4D_STREAMS; s++)
        if (r->busbw_Bps[s] > 0 && isfinite(m->busbw_Bps[s]))
            state.rates.stream[s] = m->busbw_Bps[s] / r->busbw_Bps[s];
    return state;
}

struct states {
    const struct s4d_replay *r;
    const struct s4d_night_state *v;
};

static int set(struct s4d_scenario *scenario, const char *what, double part, struct s4d_error *err)
{
    char setting[128];
    if (part == 1)
        return 0;
    snprintf(setting, sizeof setting, "%s=%.17g", what, part);
    return s4d_differences_add(&scenario->differences, setting, err);
}

static int set_all(struct s4d_scenario *scenario, const struct s4d_night_state *state,
                   const struct s4d_node *node, struct s4d_error *err)
{
    static const char *const classes[] = {[S4D_CLASS_GEMM] = "rates.gemm",
                                          [S4D_CLASS_ATTENTION] = "rates.attention",
                                          [S4D_CLASS_KERNEL] = "rates.kernel"};
    char name[64];
    int rc = 0;
    for (int i = 0; i <= S4D_CLASS_KERNEL && rc == 0; i++)
        rc = set(scenario, classes[i], state->rates.op_class[i], err);
    for (int s = 0; s < S4D_STREAMS && rc == 0; s++) {
        snprintf(name, sizeof name, "rates.%s", s4d_streams[s].name);
        rc = set(scenario, name, state->rates.stream[s], err);
    }
    int per = node->devices, on = state->slow_rank / per;
    if (state->slow_is_rank)
        snprintf(name, sizeof name, "devices.n%d.gpu%d", on,
                 node->rank_to_device[state->slow_rank % per]);
    else
        snprintf(name, sizeof name, "devices.n%d.gpu*", on);
    return rc ? rc : set(scenario, name, state->slow, err);
}

static int time_one(void *context, int index, void *result, struct s4d_error *err)
{
    const struct states *states = context;
    struct s4d_simulation s = states->r->simulation;
    struct s4d_scenario scenario = {.placement = {.seed = 1}};
    struct s4d_result got;
    s.scenario = &scenario;
    int rc = set_all(&scenario, &states->v[index], &s.machine->node, err);
    if (rc == 0)
        rc = s4d_simulate_one(&s, &s.grid, &got, err);
    s4d_scenario_free(&scenario);
    if (rc == 0)
        memcpy(result, &got.run.iteration_time_s, sizeof(double));
    return rc;
}

int s4d_replay_times(const struct s4d_replay *r, const struct s4d_night_state *v, int n,
                     double *time_s, struct s4d_error *err)
{
    struct states states = {r, v};
    struct s4d_error *errors = s4d_calloc((size_t)n + 1, sizeof *errors);
    int failed = s4d_isolated(time_one, &states, n, r->simulation.workers, time_s, sizeof *time_s,
                              errors, NULL);
    for (int i = 0; i < n && failed; i++)
        if (errors[i].exit != S4D_EXIT_OK)
            *err = errors[i];
    free(errors);
    return failed ? -1 : 0;
}
