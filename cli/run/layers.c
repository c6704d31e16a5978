/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run layers: what each op of one transformer layer takes, and how much of the rate of
 * matrix products it gets. */
#include <stddef.h>
#include <stdlib.h>

#include "cli/run/bench.h"
#include "cli/run/command.h"
#include "cli/run/devices.h"
#include "cli/run/layers.h"
#include "real/gemm_tuning.h"
#include "real/watch.h"
#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/memory.h"
#include "support/record.h"

#define AT(field) offsetof(struct s4d_layers_config, field)
/* clang-format off */
static const struct s4d_option options[] = {
    {.name = "backend", .argument = "host|cuda", .type = S4D_OPT_CHOICE, .choices = s4d_backend_names,
     .offset = AT(backend), .help = "what computes"},
    {.name = "workload", .argument = "W", .type = S4D_OPT_TEXT, .offset = AT(workload),
     .help = "model: a name (scale4d workloads), a .yaml file, or a Hugging Face config.json"},
    {.name = "layer", .argument = "N", .type = S4D_OPT_INT, .offset = AT(layer), .min = -1, .max = 1 << 20,
     .help = "which, from 0; -1: the one in the middle"},
    {.name = "threads", .argument = "N", .type = S4D_OPT_INT, .offset = AT(threads), .min = 1, .max = 4096,
     .help = "of BLAS, on every rank"},
    {.name = "tf32", .type = S4D_OPT_FLAG, .offset = AT(tf32),
     .help = "of cuda: products of f32 matrices round them to tf32"},
    {.name = "gemm-tuning", .argument = "off|cached|full", .type = S4D_OPT_CHOICE,
     .choices = s4d_gemm_tuning_names, .offset = AT(gemm_tuning), .help = "as of train"},
    {.name = "gemm-cache", .argument = "FILE", .type = S4D_OPT_TEXT, .offset = AT(gemm_cache),
     .help = "as of train"},
    {.name = "samples", .argument = "N", .type = S4D_OPT_INT, .offset = AT(samples), .min = 3, .max = 100,
     .help = "of each op, at most"},
    {.name = "json", .type = S4D_OPT_FLAG, .offset = AT(json), .help = "the record instead of the table"},
    {.name = NULL},
};
/* clang-format on */
static const struct s4d_option_group groups[] = {
    {.title = "Layers", .options = options},
    S4D_WAITING_GROUP(AT(waiting)),
    {.title = "Schedule (without --grid: every rank has the whole model, and a sequence)",
     .options = s4d_schedule_options,
     .offset = AT(schedule)},
    {.title = NULL},
};

static int build(struct s4d_layers *j, struct s4d_error *err)
{
    struct s4d_schedule_options s = j->config->schedule;
    struct s4d_grid grid;
    bool automatic;
    if (!j->config->workload)
        return s4d_fail(err, S4D_EXIT_USAGE, "--workload", "expected a model, not given");
    const struct s4d_layers_config *c = j->config;
    if (s4d_bench_check_tf32(c->tf32, c->backend, s.options.precision, err) ||
        s4d_bench_check_tuning(c->gemm_tuning, c->gemm_cache, c->backend, err))
        return -1;
    s.options.micro_batch = s.options.micro_batch > 0 ? s.options.micro_batch : 1;
    if (!s.grid.given && s.options.global_batch == 0)
        s.options.global_batch = s.options.micro_batch * j->world->size;
    if (!s.grid.given)
        s.grid.grid = s4d_grid_make(1, 1, 1, j->world->size);
    s.grid.given = true;
    if (s4d_schedule_options_resolve(&s, j->world->size, &grid, &automatic, err))
        return -1;
    if (automatic)
        return s4d_fail(err, S4D_EXIT_USAGE, "--grid", "expected GXxGYxGZxGDATA, got 'auto'");
    if (s4d_workload_load(&j->workload, j->config->workload, err) ||
        s4d_build(&j->program, &j->workload.model, &grid, &s.options, err))
        return -1;
    s4d_plan(&j->program);
    int layers = (int)j->workload.model.num_layers;
    j->layer = j->config->layer < 0 ? layers / 2 : j->config->layer;
    if (j->layer >= layers)
        return s4d_fail(err, S4D_EXIT_USAGE, "--layer", "expected one of 0 to %d, got %d",
                        layers - 1, j->layer);
    return 0;
}

/* An op of the layer that computes, of the first micro-batch; what is computed again is not shown
 * twice. */
static bool is_shown(const struct s4d_layers *j, const struct s4d_op *op)
{
    enum s4d_op_class of = s4d_op_kinds[op->kind].op_class;
    return op->label.layer == j->layer && op->label.micro_batch <= 0 &&
           (op->label.phase == S4D_PHASE_FORWARD || op->label.phase == S4D_PHASE_BACKWARD) &&
           (of == S4D_CLASS_GEMM || of == S4D_CLASS_ATTENTION || of == S4D_CLASS_KERNEL);
}

/* Assumed: products of 256 to 8192, of which the best is no more than a few per cent from the best
 * of all; one that takes longest_s is far beyond its launch. */
static const double longest_s = 0.02;
enum { SQUARES = 6, SMALLEST = 256, LEAST_POOL = 64 << 20 };

/* A program of one square product in the layer's type. */
struct square {
    struct s4d_tensor tensor[3];
    struct s4d_op op;
    struct s4d_program program;
};
static void make_square(const struct s4d_layers *j, int64_t n, struct square *s)
{
    enum s4d_type type = j->program.options.precision;
    s->op = (struct s4d_op){.kind = S4D_OP_GEMM, .label.name = "square"};
    s->op.c.gemm.m = s->op.c.gemm.n = s->op.c.gemm.k = n;
    for (int i = 0; i < 3; i++) {
        s->tensor[i] =
            (struct s4d_tensor){.type = type, .dims = 2, .shape = {n, n}, .stride = {n, 1}};
        s->op.operand[i] = (struct s4d_operand){i, i == 2 ? S4D_WRITE : S4D_READ};
    }
    s->program =
        (struct s4d_program){.tensors = s->tensor, .n_tensors = 3, .ops = &s->op, .n_ops = 1};
}

/* For all that is shown, and for what an iteration uses meanwhile. */
static int64_t pool_bytes(const struct s4d_layers *j)
{
    const struct s4d_program *p = &j->program;
    int64_t most =
        p->arena_bytes[S4D_DEVICE] < S4D_PROBE_REACH ? p->arena_bytes[S4D_DEVICE] : S4D_PROBE_REACH;
    most = most > LEAST_POOL ? most : LEAST_POOL;
    for (int i = 0; i < p->n_ops; i++) {
        int64_t bytes = is_shown(j, &p->ops[i]) ? s4d_probe_bytes(p, &p->ops[i]) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void look_for_best(struct s4d_layers *j, const struct s4d_op *op, double t_s, int64_t n)
{
    double rate = 2 * (double)op->c.gemm.m * (double)op->c.gemm.n * (double)op->c.gemm.k / t_s;
    if (rate > j->best_flops_per_s) {
        j->best_flops_per_s = rate;
        j->best_n = n;
    }
}

/* Squares of powers of two that fit the pool, until one takes so long that a larger one is no
 * faster. */
static int measure_squares(struct s4d_layers *j, struct s4d_probe *probe, struct s4d_error *err)
{
    struct s4d_probed probed = {0};
    for (int i = 0; i < SQUARES && probed.t.median < longest_s; i++) {
        struct square s;
        int64_t n = SMALLEST << i;
        make_square(j, n, &s);
        if (s4d_probe_bytes(&s.program, &s.op) > probe->pool[0].bytes)
            break;
        if (s4d_probe_op(probe, &s.program, &s.op, &probed, err))
            return -1;
        look_for_best(j, &s.op, probed.t.median, n);
    }
    return 0;
}

static int open_bench(struct s4d_layers *j, struct s4d_bench *b)
{
    const struct s4d_probe_options o = {.samples = j->config->samples,
                                        .sample_s = 1e-3,
                                        .op_s = 0.05,
                                        .attempts = 3,
                                        .vocabulary = j->workload.model.vocab_size};
    return s4d_bench_open_program(b, &j->program, &o, pool_bytes(j));
}

static int measure(struct s4d_layers *j, struct s4d_bench *b, struct s4d_error *err)
{
    b->probe.ops = j->program.ops;
    if (measure_squares(j, &b->probe, err))
        return -1;
    for (int i = 0; i < j->program.n_ops; i++) {
        struct s4d_layers_row row = {&j->program.ops[i], {{0}, false, 0}};
        if (!is_shown(j, row.op))
            continue;
        if (s4d_probe_op(&b->probe, &j->program, row.op, &row.probed, err))
            return -1;
        if (row.op->kind == S4D_OP_GEMM)
            look_for_best(j, row.op, row.probed.t.median, 0);
        s4d_push(j->row, j->n, j->cap, row);
    }
    json_t *state = b->backend->state(&b->device);
    const char *name = json_string_value(json_object_get(state, "name"));
    j->peak = s4d_advertised_peak(name ? name : "", j->program.options.precision, j->config->tf32);
    j->devices = s4d_devices_gather(j->world, state);
    return 0;
}

static int layers(struct s4d_layers *j, int argc, char **argv)
{
    const struct s4d_layers_config *c = j->config;
    struct s4d_world *w = j->world;
    struct s4d_error err;
    struct s4d_bench bench;
    int code = s4d_world_agree(w, build(j, &err) ? &err : NULL);
    if (!code)
        code = s4d_bench_watch(&bench, w, c->backend, c->threads, &c->waiting, 0);
    if (code)
        return code;
    bench.peers = s4d_mpi_peers(w, c->threads);
    bench.tf32 = c->tf32;
    bench.gemm_tuning = c->gemm_tuning;
    bench.gemm_cache = c->gemm_cache;
    if (bench.backend->own_devices)
        bench.peers.active = w->size;
    code = open_bench(j, &bench);
    if (!code && measure(j, &bench, &err))
        s4d_world_abort(w, &err);
    s4d_watch_stop();
    if (code)
        return code;
    int rc = 0;
    if (w->rank == 0) {
        json_t *record = s4d_layers_record(j, argc, argv);
        if (c->json)
            rc = s4d_record_write(record, stdout, &err);
        else
            s4d_layers_print(j, record);
        json_decref(record);
    }
    s4d_bench_close(&bench);
    return s4d_world_agree(w, rc ? &err : NULL);
}

static int run(struct s4d_world *world, int argc, char **argv)
{
    struct s4d_layers_config c = {.threads = 1,
                                  .samples = 9,
                                  .layer = -1,
                                  .waiting.timeout_s = 600,
                                  .schedule = s4d_schedule_options_default()};
    struct s4d_layers j = {.config = &c, .world = world};
    struct s4d_error err;
    int rc = s4d_options_argv(groups,
                              "Times every op of one layer, forward and backward, and says what "
                              "part of the best matrix product's rate it gets.",
                              argc, argv, &c, NULL, &err);
    int code = s4d_world_agree(world, rc < 0 ? &err : NULL);
    if (rc == 0 && code == 0)
        code = layers(&j, argc, argv);
    s4d_program_free(&j.program);
    s4d_workload_free(&j.workload);
    free(j.row);
    json_decref(j.devices);
    s4d_options_free(groups, &c);
    return code;
}

const struct s4d_run_command s4d_run_layers = {
    .name = "layers",
    .summary = "time, FLOP/s and part of the best matrix product of each op of a layer",
    .run = run,
    .options = groups,
};
