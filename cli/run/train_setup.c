/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a planned program and a token source. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/train.h"
#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/file.h"

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
    if (c->tf32 && strcmp(t->backend->name, "cuda") != 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--tf32", "--backend %s has none", t->backend->name);
    if (c->gemm_tuning != S4D_TUNING_OFF && strcmp(t->backend->name, "cuda") != 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--gemm-tuning", "--backend %s has none",
                        t->backend->name);
    if (c->save_gradients && c->iterations == 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--save-gradients",
                        "--iterations 0 computes no gradients");
    t->warmup = c->warmup >= 0 ? c->warmup : c->iterations > 1;
    if (t->warmup > 0 && t->warmup >= c->iterations)
        return s4d_fail(err, S4D_EXIT_USAGE, "--warmup",
                        "expected less than --iterations %d, got %d", c->iterations, t->warmup);
    return 0;
}

static int open_tokens(struct s4d_train *t, struct s4d_error *err)
{
    const struct s4d_train_config *c = t->config;
    const struct s4d_model *m = &t->program.model;
    bool quiet = t->world->rank != 0;
    if (c->tokens)
        return s4d_tokens_file(&t->tokens, c->tokens, (enum s4d_token_type)c->token_type,
                               m->vocab_size, m->seq_length, quiet, err);
    if (c->text)
        return s4d_tokens_text(&t->tokens, c->text, m->vocab_size, m->seq_length, quiet, err);
    s4d_tokens_random(&t->tokens, (uint64_t)c->seed, m->vocab_size, m->seq_length);
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
    return t->world->rank == 0 ? s4d_outputs_check(outputs, 4, err) : 0;
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
        build_program(t, &grid, &schedule.options, memory_bytes, err))
        return -1;
    return open_tokens(t, err);
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
