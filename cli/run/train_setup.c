/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a planned program and a token source. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run/bench.h"
#include "cli/run/train.h"
#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/file.h"
#include "support/units.h"

static int check_graphs(const struct s4d_train *t, struct s4d_error *err)
{
    const struct s4d_train_config *c = t->config;
    if (!c->cuda_graphs)
        return 0;
    if (strcmp(t->backend->name, "cuda") != 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--cuda-graphs", "--backend %s has none",
                        t->backend->name);
    if (c->check_finite)
        return s4d_fail(err, S4D_EXIT_USAGE, "--cuda-graphs",
                        "--check-finite looks at every op before the next: there is no graph then");
    if (c->iterations < 2)
        return s4d_fail(err, S4D_EXIT_USAGE, "--cuda-graphs",
                        "expected --iterations 2 or more, got %d: the first one runs op by op",
                        c->iterations);
    return 0;
}

static int check_options(struct s4d_train *t, struct s4d_error *err)
{
    const struct s4d_train_config *c = t->config;
    if (!c->workload)
        return s4d_fail(err, S4D_EXIT_USAGE, "--workload", "expected a model, not given");
    if (c->tokens && c->text)
        return s4d_fail(err, S4D_EXIT_USAGE, "--text", "--tokens is given as well");
    if (t->backend->absent)
        return s4d_fail(err, S4D_EXIT_DEVICE, "--backend", "this build has no %s: %s",
                        t->backend->name, t->backend->absent);
    if (s4d_bench_check_tf32(c->tf32, c->backend, c->schedule.options.precision, err) ||
        s4d_bench_check_tuning(c->gemm_tuning, c->gemm_cache, c->backend, err) ||
        s4d_waiting_check(&c->waiting, c->backend, err))
        return -1;
    if (c->token_type != S4D_TOKENS_BY_VOCABULARY && !c->tokens)
        return s4d_fail(err, S4D_EXIT_USAGE, "--token-type", "is of --tokens, which is not given");
    if (check_graphs(t, err))
        return -1;
    if (c->machine && !c->preflight)
        return s4d_fail(err, S4D_EXIT_USAGE, "--machine", "is of --preflight, which is not given");
    if (c->save_gradients && c->iterations == 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--save-gradients",
                        "--iterations 0 computes no gradients");
    /* Capturing is no steady state: the second iteration and the third. */
    int warm = c->cuda_graphs ? 3 : 1;
    t->warmup = c->warmup >= 0 ? c->warmup : warm < c->iterations ? warm : c->iterations > 1;
    if (t->warmup > 0 && t->warmup >= c->iterations)
        return s4d_fail(err, S4D_EXIT_USAGE, "--warmup",
                        "expected less than --iterations %d, got %d", c->iterations, t->warmup);
    return 0;
}

static int open_tokens(struct s4d_train *t, struct s4d_error *err)
{
    const struct s4d_train_config *c = t->config;
    const struct s4d_model *m = &t->program.model;
    if (c->tokens)
        return s4d_tokens_file(&t->tokens, c->tokens, (enum s4d_token_type)c->token_type,
                               m->vocab_size, m->seq_length, err);
    if (c->text)
        return s4d_tokens_text(&t->tokens, c->text, m->vocab_size, m->seq_length, err);
    s4d_tokens_random(&t->tokens, (uint64_t)c->seed, m->vocab_size, m->seq_length);
    return 0;
}

/* Every rank reads its own sequences: none of them alone would see that the file ends. */
static void warn_of_end(const struct s4d_train *t)
{
    const struct s4d_train_config *c = t->config;
    int64_t needed = (int64_t)c->iterations * t->program.options.global_batch;
    if (t->world->rank == 0 && t->tokens.sequences > 0 && needed > t->tokens.sequences)
        s4d_warn(
            "%s: it has %lld sequences, and %d iterations take %lld: after the last it is read "
            "from its beginning again",
            c->tokens ? c->tokens : c->text, (long long)t->tokens.sequences, c->iterations,
            (long long)needed);
}

/* A safetensors file is written beside and renamed, which a device or pipe cannot take; nor is what
 * was read lost, but to --save what --load read. */
static int check_output(const struct s4d_train *t, const struct s4d_output *output,
                        struct s4d_error *err)
{
    const struct s4d_train_config *c = t->config;
    bool weights = output->file == c->save;
    const struct s4d_output inputs[] = {
        {"--workload", s4d_is_path(c->workload) ? c->workload : NULL},
        {"--tokens", c->tokens},
        {"--text", c->text},
        {"--load", weights ? NULL : c->load}};
    struct stat st;
    if ((weights || output->file == c->save_gradients) && stat(output->file, &st) == 0 &&
        !S_ISREG(st.st_mode))
        return s4d_fail(err, S4D_EXIT_OUTPUT, output->file,
                        "expected a file to replace, found a device or pipe");
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i].file && s4d_file_same(output->file, inputs[i].file)) {
            s4d_fail(err, S4D_EXIT_USAGE, output->option, "'%s' is the file of %s, too",
                     output->file, inputs[i].option);
            return s4d_hint(err, "it would be written over what is read");
        }
    return 0;
}

/* Rank 0 writes them, at the end of what may have taken days. */
static int check_outputs(const struct s4d_train *t, struct s4d_error *err)
{
    const struct s4d_train_config *c = t->config;
    const struct s4d_output outputs[] = {{"--save", c->save},
                                         {"--save-gradients", c->save_gradients},
                                         {"--timeline", c->timeline},
                                         {"--record", c->record}};
    if (t->world->rank != 0)
        return 0;
    if (s4d_outputs_check(outputs, 4, err))
        return -1;
    for (int i = 0; i < 4; i++)
        if (outputs[i].file && check_output(t, &outputs[i], err))
            return -1;
    return 0;
}

/* A rank's share of its node's memory, on the poorest node: what calibrate writes as memory. */
static double memory_share_bytes(const struct s4d_world *w)
{
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / w->local_size;
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_DOUBLE, MPI_MIN, w->comm);
    return bytes;
}

/* Without --micro-batch the largest whose program fits, as scale4d simulate chooses; one that fits
 * nowhere is left to the memory's own words. */
static int build_program(struct s4d_train *t, const struct s4d_grid *grid,
                         struct s4d_options *options, double memory_bytes, struct s4d_error *err)
{
    const struct s4d_model *model = &t->workload.model;
    if (s4d_divides(model, grid, options, err))
        return -1;
    int local = options->global_batch / (grid->size[S4D_Z] * grid->size[S4D_DATA]);
    bool given = options->micro_batch > 0;
    for (int b = given ? options->micro_batch : local; b >= 1; b--) {
        if (local % b != 0 && !given)
            continue;
        options->micro_batch = b;
        if (s4d_build(&t->program, model, grid, options, err))
            return -1;
        s4d_plan(&t->program);
        if (given || b == 1 || (double)t->program.arena_bytes[S4D_DEVICE] <= memory_bytes)
            return 0;
        s4d_program_free(&t->program);
    }
    return 0;
}

/* Of this node, now, in bytes; 0: not known. */
static double free_memory_bytes(void)
{
    char line[256];
    long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %lld kB", &kib) != 1)
        ;
    if (f)
        fclose(f);
    return 1024.0 * (double)kib;
}

/* Said before the kernel, out of memory, kills a process. */
static int check_memory(const struct s4d_train *t, struct s4d_error *err)
{
    const struct s4d_program *p = &t->program;
    double each = (double)p->arena_bytes[S4D_DEVICE] + (double)p->arena_bytes[S4D_PINNED_HOST];
    double free_bytes = free_memory_bytes();
    char takes[32], are_free[32];
    if (t->config->backend != 0 || free_bytes <= 0 || each * t->world->local_size <= free_bytes)
        return 0;
    s4d_fail(err, S4D_EXIT_DEVICE, "memory",
             "a rank takes %s (micro-batches of %d), %d of them are on this node, and %s are free",
             s4d_format_bytes(each, takes, sizeof takes), p->options.micro_batch,
             t->world->local_size, s4d_format_bytes(free_bytes, are_free, sizeof are_free));
    return s4d_hint(err, "a smaller --micro-batch takes less, and so does a grid of more ranks");
}

static int build(struct s4d_train *t, struct s4d_error *err)
{
    struct s4d_schedule_options schedule = t->config->schedule;
    struct s4d_grid grid;
    bool automatic;
    double memory_bytes = memory_share_bytes(t->world);
    if (check_options(t, err) || check_outputs(t, err) ||
        s4d_schedule_options_resolve(&schedule, t->world->size, &grid, &automatic, err))
        return -1;
    if (automatic) {
        s4d_fail(err, S4D_EXIT_USAGE, "--grid", "expected GXxGYxGZxGDATA, got 'auto'");
        return s4d_hint(err, "scale4d simulate --grid auto finds a grid for a machine");
    }
    if (s4d_workload_load(&t->workload, t->config->workload, err) ||
        build_program(t, &grid, &schedule.options, memory_bytes, err) || check_memory(t, err) ||
        open_tokens(t, err))
        return -1;
    warn_of_end(t);
    return 0;
}

/* The files that ranks read by themselves. */
static int same_files(const struct s4d_train *t, struct s4d_error *err)
{
    const char *const files[] = {t->config->tokens, t->config->text, t->config->load};
    const char *const names[] = {"workload", "--tokens file", "--text file", "--load file"};
    uint64_t values[4] = {0};
    struct s4d_error own;
    int failed = 0;
    sscanf(t->workload.hash, "%16llx", (unsigned long long *)&values[0]);
    for (int i = 0; i < 3 && !failed; i++)
        failed = files[i] && s4d_file_fingerprint(files[i], &values[i + 1], &own);
    if (failed)
        *err = own;
    int code = s4d_world_agree(t->world, failed ? &own : NULL);
    if (code)
        return code;
    return s4d_world_agree(t->world, s4d_world_same(t->world, names, values, 4, err) ? err : NULL);
}

int s4d_train_setup(struct s4d_train *t, struct s4d_error *err)
{
    int code = s4d_world_agree(t->world, build(t, err) ? err : NULL);
    return code ? code : same_files(t, err);
}
