/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run train: whole iterations of training, on every rank of a job. */
#include <stddef.h>
#include <stdio.h>

#include "cli/run/command.h"
#include "cli/run/preflight.h"
#include "cli/run/train.h"
#include "support/record.h"

#define AT(field) offsetof(struct s4d_train_config, field)
#define TEXT(n, arg, field, words)                                                                 \
    {                                                                                              \
        .name = n, .argument = arg, .type = S4D_OPT_TEXT, .offset = AT(field), .help = words       \
    }
#define INT(n, arg, field, lo, hi, words)                                                          \
    {                                                                                              \
        .name = n, .argument = arg, .type = S4D_OPT_INT, .offset = AT(field), .min = lo,           \
        .max = hi, .help = words                                                                   \
    }
#define FLAG(n, field, words)                                                                      \
    {                                                                                              \
        .name = n, .type = S4D_OPT_FLAG, .offset = AT(field), .help = words                        \
    }
#define CHOICE(n, arg, field, list, words)                                                         \
    {                                                                                              \
        .name = n, .argument = arg, .type = S4D_OPT_CHOICE, .offset = AT(field), .choices = list,  \
        .help = words                                                                              \
    }
/* clang-format off */
static const struct s4d_option options[] = {
    CHOICE("backend", "host|cuda", backend, s4d_backend_names, "what computes"),
    FLAG("list-backends", list_backends, "the backends of this build, and why others are not in it"),
    TEXT("workload", "W", workload, "model: a name (scale4d workloads), a .yaml file, or a Hugging Face config.json"),
    INT("iterations", "N", iterations, 0, 10000000, "optimizer steps"),
    INT("warmup", "N", warmup, -1, 1 << 30,
        "the first N of them are not timed; -1: one, with --cuda-graphs three, where there are more"),
    INT("seed", "N", seed, 0, 1 << 30, "of initial weights and random tokens"),
    TEXT("tokens", "FILE", tokens, "train on little-endian integers; else on random tokens"),
    CHOICE("token-type", "auto|u16|u32", token_type, s4d_token_type_names,
           "of --tokens; auto: u16 if the vocabulary fits"),
    TEXT("text", "FILE", text, "train on the bytes of a file"),
    TEXT("load", "FILE", load, "start from these weights (safetensors)"),
    TEXT("save", "FILE", save, "the weights at the end (safetensors)"),
    TEXT("save-gradients", "FILE", save_gradients,
         "of the mean loss of the first iteration, before clipping (safetensors)"),
    TEXT("timeline", "FILE", timeline, "every op's start and end, for ui.perfetto.dev"),
    INT("threads", "N", threads, 1, 4096, "of BLAS, on every rank"),
    CHOICE("progress", "panels|thread|none|auto", progress, s4d_progress_names,
           "who drives collectives while a rank computes: itself between panels of a matrix "
           "product, a thread, nobody; auto: nobody where ranks share processors, else a thread"),
    FLAG("tf32", tf32, "of cuda: products of f32 matrices round them to tf32, for tensor cores"),
    CHOICE("gemm-tuning", "off|cached|full", gemm_tuning, s4d_gemm_tuning_names,
           "of cuda: multiply as the matrices lie, or turn some first where that was faster: as the "
           "cache says, or measured where it does not"),
    TEXT("gemm-cache", "FILE", gemm_cache,
         "of --gemm-tuning; default ~/.cache/scale4d/gemm-tuning.tsv"),
    FLAG("cuda-graphs", cuda_graphs,
         "of cuda: every iteration but the first is launched as one CUDA graph; they do not overlap"),
    FLAG("preflight", preflight,
         "first check all devices, as scale4d-run preflight does; exit 1 where one is slow"),
    TEXT("machine", "M", machine, "of --preflight: a name or file whose rates are the measure, too"),
    FLAG("check-finite", check_finite, "stop at the first op that writes a NaN or an infinity"),
    TEXT("record", "FILE", record,
         "append the record, one JSON line; a launcher that is ended loses what it has not read"),
    TEXT("host-class", "NAME", host_class,
         "of the record: machines to compare night by night; default SCALE4D_HOST_CLASS, else "
         "device and host without digits"),
    FLAG("json", json, "print the record, one JSON line, and nothing else"),
    FLAG("log-throughput", log_throughput,
         "a line an iteration in Megatron-LM's words, for what reads its logs; with --json on "
         "standard error. Times are rank 0's: nothing waits for it"),
    {.name = NULL},
};
/* clang-format on */

const struct s4d_option_group s4d_train_groups[] = {
    {.title = "Training", .options = options},
    S4D_WAITING_GROUP(AT(waiting)),
    {.title = "Schedule", .options = s4d_schedule_options, .offset = AT(schedule)},
    {.title = NULL},
};

struct s4d_train_config s4d_train_config_default(void)
{
    return (struct s4d_train_config){.iterations = 10,
                                     .warmup = -1,
                                     .seed = 1,
                                     .threads = 1,
                                     .progress = S4D_PROGRESS_DEFAULT,
                                     .waiting.timeout_s = 1800,
                                     .schedule = s4d_schedule_options_default()};
}

struct s4d_preflight_config s4d_train_check_of(const struct s4d_train_config *c)
{
    struct s4d_preflight_config check = s4d_preflight_config_default();
    check.backend = c->backend;
    check.precision = (int)c->schedule.options.precision;
    check.threads = c->threads;
    check.machine = c->machine;
    check.waiting = c->waiting;
    check.tf32 = c->tf32;
    return check;
}

/* A slow device ends the run with the check's record. */
int s4d_train_preflight(struct s4d_train *t)
{
    const struct s4d_train_config *c = t->config;
    const struct s4d_preflight_config check = s4d_train_check_of(c);
    struct s4d_error err;
    int rc = 0, code = s4d_preflight_run(&check, t->world, &t->preflight);
    if (t->preflight && !c->json)
        s4d_preflight_print(t->preflight);
    if (t->preflight)
        s4d_preflight_warn(t->preflight);
    if (code != S4D_EXIT_CHECK)
        return code;
    if (t->preflight && c->json) {
        json_object_set_new(t->preflight, "provenance", s4d_provenance(t->argc, t->argv));
        rc = s4d_record_write(t->preflight, stdout, &err);
    }
    if (!rc) {
        s4d_fail(&err, S4D_EXIT_CHECK, "--preflight", "devices are slow: not trained");
        s4d_hint(&err, "without --preflight they are used all the same");
    }
    return s4d_world_agree(t->world, &err);
}

static int list_backends(void)
{
    for (int i = 0; i < S4D_BACKENDS; i++) {
        const struct s4d_backend *b = s4d_backend_of(i);
        printf("%-6s %-4s %s\n", b->name, b->absent ? "no" : "yes",
               b->absent ? b->absent : b->about());
    }
    return S4D_EXIT_OK;
}

static int run(struct s4d_world *world, int argc, char **argv)
{
    struct s4d_train_config c = s4d_train_config_default();
    struct s4d_train t = {.config = &c, .argc = argc, .argv = argv, .world = world};
    struct s4d_error err;
    int rc =
        s4d_options_argv(s4d_train_groups, "Trains a model and reports time, FLOP/s and losses.",
                         argc, argv, &c, NULL, &err);
    int code = s4d_world_agree(world, rc < 0 ? &err : NULL);
    t.backend = s4d_backend_of(rc == 0 ? c.backend : 0);
    if (rc == 0 && code == 0)
        code = c.list_backends ? list_backends() : s4d_train_prepare(&t);
    if (rc == 0 && code == 0 && c.preflight && !c.list_backends)
        code = s4d_train_preflight(&t);
    if (rc == 0 && code == 0 && !c.list_backends)
        code = s4d_train_run(&t);
    s4d_train_clean_up(&t);
    s4d_options_free(s4d_train_groups, &c);
    return code;
}

const struct s4d_run_command s4d_run_train = {
    .name = "train",
    .summary = "train a model: losses, iteration times, FLOP/s, exposed communication",
    .run = run,
    .options = s4d_train_groups,
};
