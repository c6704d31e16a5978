/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run collective: nccl-tests' columns, measured. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/bench.h"
#include "cli/run/command.h"
#include "real/host_class.h"
#include "real/watch.h"
#include "support/memory.h"
#include "support/option.h"
#include "support/record.h"

struct config {
    int backend;
    char *op, *axis, *grid, *host_class;
    int factor, samples, threads;
    int64_t smallest, largest;
    struct s4d_waiting waiting;
    bool json;
};

#define AT(field) offsetof(struct config, field)
static const struct s4d_option options[] = {
    {.name = "backend",
     .argument = "host|cuda",
     .type = S4D_OPT_CHOICE,
     .choices = s4d_backend_names,
     .offset = AT(backend),
     .help = "what carries the data"},
    {.name = "op",
     .argument = "OP",
     .type = S4D_OPT_TEXT,
     .offset = AT(op),
     .help = "all_reduce, all_gather or reduce_scatter"},
    {.name = "axis",
     .argument = "AXIS",
     .type = S4D_OPT_TEXT,
     .offset = AT(axis),
     .help = "all groups of this axis (x, y, z, data; z,data; x,y,z) of --grid, side by side; "
             "without it one group of all ranks"},
    {.name = "grid",
     .argument = "GXxGYxGZxGDATA",
     .type = S4D_OPT_TEXT,
     .offset = AT(grid),
     .help = "the process grid, for --axis"},
    {.name = "minbytes",
     .key = 'b',
     .argument = "MIN",
     .type = S4D_OPT_SIZE,
     .offset = AT(smallest),
     .min = 4,
     .max = 1 << 30,
     .help = "smallest size; K, M, G are binary"},
    {.name = "maxbytes",
     .key = 'e',
     .argument = "MAX",
     .type = S4D_OPT_SIZE,
     .offset = AT(largest),
     .min = 4,
     .max = 1 << 30,
     .help = "largest size"},
    {.name = "stepfactor",
     .key = 'f',
     .argument = "FACTOR",
     .type = S4D_OPT_INT,
     .offset = AT(factor),
     .min = 2,
     .max = 1 << 20,
     .help = "from one size to the next"},
    {.name = "samples",
     .key = 'n',
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = AT(samples),
     .min = 3,
     .max = 100,
     .help = "of each size; up to ten times as many of small ones"},
    {.name = "threads",
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = AT(threads),
     .min = 1,
     .max = 4096,
     .help = "processors that every rank has"},
    {.name = "host-class",
     .argument = "NAME",
     .type = S4D_OPT_TEXT,
     .offset = AT(host_class),
     .help = "of the records: machines to compare night by night, as of train"},
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = AT(json),
     .help = "one record a size instead of the table"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {
    {.title = "Collective", .options = options}, S4D_WAITING_GROUP(AT(waiting)), {.options = NULL}};

struct job {
    const struct config *config;
    enum s4d_op_kind op;
    struct s4d_grid grid;
    int stream, members;
    json_t *provenance; /* of rank 0 */
    char *host_class;
    double wrong;
    int noisy;
    bool lost; /* a record, and why */
    struct s4d_error err;
};

static int find_op(struct job *job, struct s4d_error *err)
{
    static const struct {
        const char *name;
        enum s4d_op_kind op;
    } known[] = {{"all_reduce", S4D_OP_ALL_REDUCE},
                 {"all_gather", S4D_OP_ALL_GATHER},
                 {"reduce_scatter", S4D_OP_REDUCE_SCATTER}};
    if (!job->config->op)
        return s4d_fail(err, S4D_EXIT_USAGE, "--op",
                        "expected all_reduce, all_gather or reduce_scatter, not given");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(job->config->op, known[i].name) == 0) {
            job->op = known[i].op;
            return 0;
        }
    return s4d_fail(err, S4D_EXIT_USAGE, "--op",
                    "expected all_reduce, all_gather or reduce_scatter, got '%s'", job->config->op);
}

static int check(struct job *job, int ranks, struct s4d_error *err)
{
    const struct config *c = job->config;
    if (find_op(job, err))
        return -1;
    if (c->smallest > c->largest)
        return s4d_fail(err, S4D_EXIT_USAGE, "-b", "expected at most -e (%lld), got %lld",
                        (long long)c->largest, (long long)c->smallest);
    if (!c->axis != !c->grid)
        return s4d_fail(err, S4D_EXIT_USAGE, "--axis", "goes with --grid, and --grid with --axis");
    job->grid = s4d_grid_make(1, 1, ranks, 1);
    if (c->grid && s4d_grid_parse(c->grid, &job->grid, err))
        return -1;
    if (s4d_grid_ranks(&job->grid) != ranks)
        return s4d_fail(err, S4D_EXIT_USAGE, "--grid", "%s has %d ranks; started were %d", c->grid,
                        s4d_grid_ranks(&job->grid), ranks);
    if (ranks < 2) {
        s4d_fail(err, S4D_EXIT_USAGE, "", "one rank has nobody to talk to");
        return s4d_hint(err, "mpirun -n 2 scale4d-run collective ...");
    }
    job->stream = c->axis ? s4d_bench_stream(c->axis, &job->grid, err) : (int)S4D_STREAM_Z_GATHER;
    if (job->stream < 0)
        return -1;
    job->members = s4d_group_size(&job->grid, s4d_streams[job->stream].axes);
    return 0;
}

static double bus_Bps(const struct job *job, double algorithm_Bps)
{
    double part = (job->members - 1.0) / job->members;
    return algorithm_Bps * part * (job->op == S4D_OP_ALL_REDUCE ? 2 : 1);
}

static void print_head(const struct job *job)
{
    int ranks = s4d_grid_ranks(&job->grid), n = ranks / job->members;
    printf("# %s, %d group%s of %d ranks side by side; a variation above %.0f %% is too noisy to "
           "use (!)\n",
           job->config->op, n, n == 1 ? "" : "s", job->members, 100 * S4D_PROBE_NOISY);
    printf("#\n# %12s %14s %8s %7s %6s %11s %8s %8s %11s %10s %7s\n", "size", "count", "type",
           "redop", "root", "time", "algbw", "busbw", "p99", "variation", "#wrong");
    printf("# %12s %14s %8s %7s %6s %11s %8s %8s %11s %10s %7s\n", "(B)", "(elements)", "", "", "",
           "(us)", "(GB/s)", "(GB/s)", "(us)", "(%)", "");
}

/* What cannot be written is known in the end, when other ranks can be told. */
static void report(struct job *job, int64_t bytes, const struct s4d_probed *p)
{
    int per_rank = job->op == S4D_OP_ALL_REDUCE ? 1 : job->members;
    double algorithm_Bps = (double)bytes / p->t.median;
    if (!job->config->json) {
        printf("  %12lld %14lld %8s %7s %6d %11.2f %8.3f %8.3f %11.2f %9.1f%c %7.0f\n",
               (long long)bytes, (long long)bytes / 4 / per_rank, "float",
               job->op == S4D_OP_ALL_GATHER ? "none" : "sum", -1, 1e6 * p->t.median,
               1e-9 * algorithm_Bps, 1e-9 * bus_Bps(job, algorithm_Bps), 1e6 * p->t.p99,
               100 * p->t.variation, p->noisy ? '!' : ' ', p->wrong);
        return;
    }
    const int *size = job->grid.size;
    char *grid = s4d_asprintf("%dx%dx%dx%d", size[S4D_X], size[S4D_Y], size[S4D_Z], size[S4D_DATA]);
    json_t *record = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:i, s:b, s:f, s:s}",
        "kind", "collective", "backend", s4d_backend_names[job->config->backend], "op",
        job->config->op, "grid", grid, "axis", job->config->axis ? job->config->axis : "z", "ranks",
        job->members, "groups", s4d_grid_ranks(&job->grid) / job->members, "bytes",
        (json_int_t)bytes, "time_s", p->t.median, "algbw_Bps", algorithm_Bps, "busbw_Bps",
        bus_Bps(job, algorithm_Bps), "p99_s", p->t.p99, "variation", p->t.variation, "samples",
        p->t.n, "noisy", p->noisy, "wrong", p->wrong, "model_version", s4d_model_version);
    json_object_set_new(record, "host_class", json_string(job->host_class));
    json_object_set(record, "provenance", job->provenance);
    if (!job->lost)
        job->lost = s4d_record_write(record, stdout, &job->err) != 0;
    json_decref(record);
    free(grid);
}

static int open_bench(const struct job *job, struct s4d_bench *b)
{
    const struct config *c = job->config;
    const struct s4d_probe_options o = {
        .samples = c->samples, .sample_s = 0, .op_s = 0.05, .attempts = 3, .vocabulary = 2};
    return s4d_bench_open(b, &job->grid, (enum s4d_stream)job->stream, S4D_F32, &o,
                          2 * c->largest + 4096);
}

static int measure(struct job *job, struct s4d_bench *b, struct s4d_error *err)
{
    const struct config *c = job->config;
    for (int64_t bytes = c->smallest; bytes <= c->largest; bytes *= c->factor) {
        struct s4d_probed p;
        int64_t whole = 4 * (job->op == S4D_OP_ALL_REDUCE ? 1 : job->members);
        int64_t rounded = bytes / whole * whole; /* of whole elements, as nccl-tests */
        if (rounded == 0)
            continue;
        if (s4d_probe_collective(&b->probe, &job->grid, job->op, (enum s4d_stream)job->stream,
                                 rounded, &p, err))
            return -1;
        report(job, rounded, &p);
        fflush(stdout);
        job->wrong += p.wrong;
        job->noisy += p.noisy;
    }
    return 0;
}

static int collective(struct job *job, struct s4d_world *world, int argc, char **argv)
{
    struct s4d_error err;
    struct s4d_bench bench;
    int code = s4d_world_agree(world, check(job, world->size, &err) ? &err : NULL);
    if (!code)
        code = s4d_bench_watch(&bench, world, job->config->backend, 1, &job->config->waiting, 0);
    if (code)
        return code;
    bench.peers = s4d_mpi_peers(world, job->config->threads);
    job->provenance = s4d_provenance(argc, argv);
    job->host_class =
        s4d_host_class(job->config->host_class, s4d_backend_names[job->config->backend],
                       world->local_size, world->host);
    if (!job->config->json) {
        s4d_provenance_print(job->provenance, stdout);
        print_head(job);
    }
    code = open_bench(job, &bench);
    if (!code && measure(job, &bench, &err))
        s4d_world_abort(world, &err);
    s4d_watch_stop();
    s4d_bench_close(&bench);
    json_decref(job->provenance);
    free(job->host_class);
    if (!code)
        code = s4d_world_agree(world, job->lost ? &job->err : NULL);
    if (code)
        return code;
    if (world->rank == 0 && job->noisy)
        s4d_warn("%d sizes vary by more than %.0f %%: too noisy to use", job->noisy,
                 100 * S4D_PROBE_NOISY);
    if (!job->config->json)
        printf("# Out of bounds values : %.0f %s\n", job->wrong, job->wrong > 0 ? "FAILED" : "OK");
    return job->wrong > 0 ? S4D_EXIT_CHECK : S4D_EXIT_OK;
}

static int run(struct s4d_world *world, int argc, char **argv)
{
    struct config c = {.smallest = 8,
                       .largest = 4 << 20,
                       .factor = 2,
                       .samples = 20,
                       .threads = 1,
                       .waiting.timeout_s = 300};
    struct job job = {.config = &c};
    struct s4d_error err;
    int rc = s4d_options_argv(groups, "Measures one collective by size, in nccl-tests' columns.",
                              argc, argv, &c, NULL, &err);
    int code = s4d_world_agree(world, rc < 0 ? &err : NULL);
    if (rc == 0 && code == 0)
        code = collective(&job, world, argc, argv);
    s4d_options_free(groups, &c);
    return code;
}

const struct s4d_run_command s4d_run_collective = {
    .name = "collective",
    .summary = "times and bandwidths of one collective by size, in nccl-tests' columns",
    .run = run,
    .options = groups,
};
