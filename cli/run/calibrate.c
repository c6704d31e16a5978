/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run calibrate: measures this machine, and writes it as a machine file. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/run/bench.h"
#include "cli/run/calibrate.h"
#include "cli/run/calibrate_write.h"
#include "cli/run/command.h"
#include "real/host/host.h"
#include "real/watch.h"
#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/progress.h"
#include "support/record.h"
#include "workloads/workload.h"

#define AT(field) offsetof(struct s4d_calibrate_config, field)
static const struct s4d_option options[] = {
    {.name = "backend",
     .argument = "host|cuda",
     .type = S4D_OPT_CHOICE,
     .choices = s4d_backend_names,
     .offset = AT(backend),
     .help = "what is measured"},
    {.name = "output",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(output),
     .help = "the machine, for scale4d simulate --machine FILE; needs all parts"},
    {.name = "workload",
     .argument = "W",
     .type = S4D_OPT_LIST,
     .offset = AT(workloads),
     .help = "model whose ops are measured; may be repeated"},
    {.name = "nccl-topology",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(topology),
     .help = "of cuda: links of a node and network ports for --output, from what NCCL wrote "
             "(NCCL_TOPO_DUMP_FILE)"},
    {.name = "tf32",
     .type = S4D_OPT_FLAG,
     .offset = AT(tf32),
     .help = "of cuda: products of f32 matrices round them to tf32"},
    {.name = "transposes",
     .type = S4D_OPT_FLAG,
     .offset = AT(transposes),
     .help = "measure every product's shape with all transposes, not just its own"},
    {.name = "threads",
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = AT(threads),
     .min = 1,
     .max = 4096,
     .help = "of BLAS, on every rank"},
    {.name = "progress",
     .argument = "panels|thread|none|auto",
     .type = S4D_OPT_CHOICE,
     .choices = s4d_progress_names,
     .offset = AT(progress),
     .help = "who drives collectives while a rank computes, as of train"},
    {.name = "samples",
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = AT(samples),
     .min = 3,
     .max = 100,
     .help = "of each measurement, at most"},
    {.name = NULL},
};

static const struct s4d_option_group groups[] = {
    {.title = "Calibration", .options = options},
    S4D_WAITING_GROUP(AT(waiting)),
    {.title = "Schedule (without --grid: every grid of so many ranks that divides the model)",
     .options = s4d_schedule_options,
     .offset = AT(schedule)},
    {.title = NULL},
};

static const struct {
    const char *name;
    unsigned part, classes; /* op classes of programs */
} parts[] = {
    {"gemm", S4D_PART_GEMM, 1u << S4D_CLASS_GEMM},
    {"attention", S4D_PART_ATTENTION, 1u << S4D_CLASS_ATTENTION},
    {"kernels", S4D_PART_KERNELS, 1u << S4D_CLASS_KERNEL},
    {"copies", S4D_PART_COPIES, 1u << S4D_CLASS_COPY},
    {"collectives", S4D_PART_COLLECTIVES, 0},
};
enum { PARTS = sizeof parts / sizeof *parts };
enum { PASSES = 2 }; /* everything, twice: see s4d_calibrate_program */

static int find_parts(struct s4d_calibrate *c, const struct s4d_texts *names, struct s4d_error *err)
{
    const char *known[PARTS];
    for (int i = 0; i < PARTS; i++)
        known[i] = parts[i].name;
    for (int j = 0; j < names->n; j++) {
        unsigned before = c->parts;
        for (int i = 0; i < PARTS; i++)
            if (strcmp(names->v[j], known[i]) == 0)
                c->parts |= parts[i].part;
        if (c->parts == before) {
            s4d_fail(err, S4D_EXIT_USAGE, "", "expected parts to measure, each once; got '%s'",
                     names->v[j]);
            return s4d_hint_nearest(err, names->v[j], known, PARTS);
        }
    }
    if (names->n == 0)
        c->parts = S4D_ALL_PARTS;
    if (s4d_bench_check_tf32(c->config->tf32, c->config->backend,
                             c->config->schedule.options.precision, err))
        return -1;
    if (c->config->output && c->parts != S4D_ALL_PARTS)
        return s4d_fail(err, S4D_EXIT_USAGE, "--output", "a machine needs all parts measured");
    if (c->config->workloads.n == 0 && (c->parts & ~S4D_PART_COLLECTIVES)) {
        s4d_fail(err, S4D_EXIT_USAGE, "--workload", "expected a model, not given");
        return s4d_hint(err, "its ops on this many ranks are what is measured");
    }
    return 0;
}

/* A program for one grid; 0, 1: it does not divide, -1. */
static int add_program(struct s4d_calibrate *c, const struct s4d_model *model,
                       const struct s4d_grid *sizes, struct s4d_error *err)
{
    struct s4d_schedule_options s = c->config->schedule;
    struct s4d_program program;
    struct s4d_grid grid;
    bool automatic;
    if (!s.grid.given) {
        s.grid.given = true;
        s.grid.grid = *sizes;
    }
    if (s4d_schedule_options_resolve(&s, c->world->size, &grid, &automatic, err))
        return -1;
    if (automatic)
        return s4d_fail(err, S4D_EXIT_USAGE, "--grid",
                        "expected GXxGYxGZxGDATA, or nothing for all, got 'auto'");
    if (s.options.micro_batch == 0)
        s.options.micro_batch = 1;
    c->precision = s.options.precision;
    if (s4d_build(&program, model, &grid, &s.options, err))
        return c->config->schedule.grid.given ? -1 : 1;
    s4d_plan(&program);
    s4d_push(c->program, c->n_programs, c->cap_programs, program);
    return 0;
}

static int add_grids(struct s4d_calibrate *c, const struct s4d_model *model, struct s4d_error *err)
{
    int n = c->world->size, found = 0;
    for (int x = 1; x <= n; x++)
        for (int y = 1; x * y <= n; y++)
            for (int z = 1; x * y * z <= n; z++) {
                if (n % (x * y * z) != 0)
                    continue;
                struct s4d_grid grid = s4d_grid_make(x, y, z, n / (x * y * z));
                int rc = add_program(c, model, &grid, err);
                if (rc < 0)
                    return -1;
                found += rc == 0;
                if (c->config->schedule.grid.given)
                    return 0;
            }
    return found ? 0 : -1; /* with what the last one lacked */
}

static int build_programs(struct s4d_calibrate *c, struct s4d_error *err)
{
    const struct s4d_texts *names = &c->config->workloads;
    c->precision = S4D_F32;
    for (int i = 0; i < names->n; i++) {
        struct s4d_workload workload;
        if (s4d_workload_load(&workload, names->v[i], err))
            return -1;
        int rc = add_grids(c, &workload.model, err);
        s4d_workload_free(&workload);
        if (rc)
            return -1;
    }
    return 0;
}

/* What the programs need: the pool's size, and the largest collective, up to a power of two. */
static void measure_needs(struct s4d_calibrate *c)
{
    int64_t largest = c->n_programs ? 4 : S4D_BESIDE_BYTES;
    c->pool_bytes = 2 * S4D_LARGEST_COPY + 4096;
    for (int i = 0; i < c->n_programs; i++) {
        const struct s4d_program *p = &c->program[i];
        int64_t arena = p->arena_bytes[S4D_DEVICE];
        arena = arena < S4D_PROBE_REACH ? arena : S4D_PROBE_REACH;
        c->pool_bytes = arena > c->pool_bytes ? arena : c->pool_bytes;
        for (int j = 0; j < p->n_ops; j++) {
            const struct s4d_op *op = &p->ops[j];
            int64_t need = s4d_probe_bytes(p, op);
            if (need > c->pool_bytes)
                c->pool_bytes = need;
            if (s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE &&
                s4d_collective_bytes(&op->c, op->kind) > largest)
                largest = s4d_collective_bytes(&op->c, op->kind);
        }
    }
    for (c->largest_collective = 4; c->largest_collective < largest;)
        c->largest_collective *= 2;
    if (2 * c->largest_collective + 4096 > c->pool_bytes)
        c->pool_bytes = 2 * c->largest_collective + 4096;
}

static int measure_programs(struct s4d_calibrate *c, struct s4d_bench *b, int pass,
                            struct s4d_error *err)
{
    unsigned classes = 0;
    for (int i = 0; i < PARTS; i++)
        classes |= c->parts & parts[i].part ? parts[i].classes : 0;
    for (int i = 0; i < c->n_programs; i++) {
        b->probe.options.vocabulary = c->program[i].model.vocab_size;
        if (c->world->rank == 0)
            s4d_progress("measuring ops", pass * c->n_programs + i, PASSES * c->n_programs);
        if (s4d_calibrate_program(&c->result, &b->probe, &c->program[i], classes, pass, err))
            return -1;
        if (c->config->transposes && (c->parts & S4D_PART_GEMM) &&
            s4d_calibrate_transposes(&c->result, &b->probe, &c->program[i], pass, err))
            return -1;
    }
    return 0;
}

/* Groups of every size that divides the ranks, of neighbours, side by side. */
static int measure_collectives(struct s4d_calibrate *c, struct s4d_bench *b,
                               const struct s4d_probe_options *o, int pass, struct s4d_error *err)
{
    int n = c->world->size;
    for (int ranks = 2; ranks <= n; ranks++) {
        struct s4d_grid grid = s4d_grid_make(1, ranks, 1, n / ranks);
        if (n % ranks != 0)
            continue;
        if (c->world->rank == 0)
            s4d_progress("measuring collectives", pass * n + ranks, PASSES * n);
        int code = s4d_bench_open(b, &grid, S4D_STREAM_Y, S4D_F32, o, c->pool_bytes);
        if (code)
            return code;
        if (s4d_calibrate_collectives(&c->result, &b->probe, &grid, S4D_STREAM_Y,
                                      c->largest_collective, err))
            return -1;
        struct s4d_probed beside;
        if (ranks == n && pass == 0 &&
            s4d_probe_beside(&b->probe, &grid, S4D_STREAM_Y, S4D_BESIDE_BYTES, &beside, err))
            return -1;
        if (ranks == n && pass == 0)
            c->result.beside = beside;
        s4d_bench_close(b);
    }
    return 0;
}

static void describe_once(struct s4d_calibrate *c, const struct s4d_bench *b)
{
    if (!c->result.device)
        s4d_calibrate_describe(c, b);
}

static int measure_pass(struct s4d_calibrate *c, struct s4d_bench *b, int pass,
                        struct s4d_error *err)
{
    const struct s4d_probe_options o = {.samples = c->config->samples,
                                        .sample_s = 3e-4,
                                        .op_s = 0.015,
                                        .attempts = 2,
                                        .vocabulary = 2};
    struct s4d_grid grid = s4d_grid_make(1, 1, c->world->size, 1);
    enum s4d_stream none = S4D_STREAM_COMPUTE;
    int code = s4d_bench_open(b, &grid, none, c->precision, &o, c->pool_bytes);
    if (code)
        return code;
    describe_once(c, b);
    if (measure_programs(c, b, pass, err))
        return -1;
    if ((c->parts & S4D_PART_COPIES) &&
        s4d_calibrate_copies(&c->result, &b->probe, S4D_LARGEST_COPY, err))
        return -1;
    s4d_bench_close(b);
    return (c->parts & S4D_PART_COLLECTIVES) ? measure_collectives(c, b, &o, pass, err) : 0;
}

/* 0; the exit code on which all ranks agree, its error printed; or -1: this rank's error. */
static int measure(struct s4d_calibrate *c, struct s4d_bench *b, struct s4d_error *err)
{
    int rc = 0;
    measure_needs(c);
    for (int pass = 0; pass < PASSES && !rc; pass++)
        rc = measure_pass(c, b, pass, err);
    if (c->world->rank == 0)
        s4d_progress_end();
    return rc;
}

/* Of rank 0, whose node it is. */
static int check_topology(const struct s4d_calibrate *c, struct s4d_error *err)
{
    const char *file = c->config->topology;
    if (!file)
        return 0;
    if (!c->config->output || !s4d_backend_of(c->config->backend)->own_devices)
        return s4d_fail(err, S4D_EXIT_USAGE, "--nccl-topology",
                        "is of --backend cuda and --output, which are not given");
    return c->world->rank == 0 ? s4d_calibrate_check_topology(file, c->world->local_size, err) : 0;
}

static int calibrate(struct s4d_calibrate *c, const struct s4d_texts *names)
{
    struct s4d_world *w = c->world;
    struct s4d_error err;
    struct s4d_bench bench;
    int rc = find_parts(c, names, &err) || check_topology(c, &err) ? -1 : build_programs(c, &err);
    int code = s4d_world_agree(w, rc ? &err : NULL);
    if (!code)
        code = s4d_bench_watch(&bench, w, c->config->backend, c->config->threads,
                               &c->config->waiting, 0);
    if (code)
        return code;
    bench.peers = s4d_mpi_peers(w, c->config->threads);
    bench.progress = c->config->progress;
    bench.tf32 = c->config->tf32;
    if (bench.backend->own_devices)
        bench.peers.active = w->size;
    code = measure(c, &bench, &err);
    if (code < 0)
        s4d_world_abort(w, &err);
    s4d_watch_stop();
    if (code)
        return code;
    s4d_calibrate_print(c);
    rc = w->rank == 0 && c->config->output
             ? s4d_calibrate_write(&c->result, c->config->topology, c->config->output, &err)
             : 0;
    code = s4d_world_agree(w, rc ? &err : NULL);
    if (!code && c->config->output)
        printf("# %s is written: scale4d simulate --machine %s%s\n", c->config->output,
               strchr(c->config->output, '/') ? "" : "./", c->config->output);
    return code;
}

static void release(struct s4d_calibrate *c)
{
    for (int i = 0; i < c->n_programs; i++)
        s4d_program_free(&c->program[i]);
    free(c->program);
    free((char *)c->result.device);
    free((char *)c->result.source);
    s4d_calibration_free(&c->result);
    json_decref(c->provenance);
}

static int run(struct s4d_world *world, int argc, char **argv)
{
    struct s4d_calibrate_config config = {.threads = 1,
                                          .samples = 9,
                                          .waiting.timeout_s = 600,
                                          .progress = S4D_PROGRESS_DEFAULT,
                                          .schedule = s4d_schedule_options_default()};
    struct s4d_calibrate c = {.config = &config, .world = world};
    struct s4d_texts names = {.usage = "[PART...]"};
    struct s4d_error err;
    int rc = s4d_options_argv(groups,
                              "Measures this machine. PART: what to measure, of gemm, "
                              "attention, kernels, copies and collectives (default: all).",
                              argc, argv, &config, &names, &err);
    int code = s4d_world_agree(world, rc < 0 ? &err : NULL);
    c.provenance = s4d_provenance(argc, argv);
    if (rc == 0 && code == 0)
        code = calibrate(&c, &names);
    release(&c);
    s4d_texts_free(&names);
    s4d_options_free(groups, &config);
    return code;
}

const struct s4d_run_command s4d_run_calibrate = {
    .name = "calibrate",
    .summary = "measure this machine, and write it for scale4d simulate",
    .run = run,
    .options = groups,
};
