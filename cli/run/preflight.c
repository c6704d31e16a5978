/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run preflight: the health check of all devices, as a command. */
#include "cli/run/preflight.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/run/command.h"
#include "real/mpi/backend.h"
#include "support/record.h"
#include "support/units.h"

struct config {
    struct s4d_preflight_config preflight;
    bool json;
};

static const char *const precisions[] = {"f64", "f32", "bf16", "f16", NULL};
_Static_assert(S4D_F64 == 0 && S4D_F32 == 1 && S4D_BF16 == 2 && S4D_F16 == 3, "precisions[]");

#define AT(field) offsetof(struct config, field)
static const struct s4d_option options[] = {
    {.name = "backend",
     .argument = "host|cuda",
     .type = S4D_OPT_CHOICE,
     .choices = s4d_backend_names,
     .offset = AT(preflight.backend),
     .help = "what is checked"},
    {.name = "precision",
     .argument = "f64|f32|bf16|f16",
     .type = S4D_OPT_CHOICE,
     .choices = precisions,
     .offset = AT(preflight.precision),
     .help = "of the matrix products"},
    {.name = "tf32",
     .type = S4D_OPT_FLAG,
     .offset = AT(preflight.tf32),
     .help = "of cuda: products of f32 matrices round them to tf32"},
    {.name = "machine",
     .argument = "M",
     .type = S4D_OPT_TEXT,
     .offset = AT(preflight.machine),
     .help = "a name or file: its rates are the measure, beside the peers'"},
    {.name = "slower",
     .argument = "PERCENT",
     .type = S4D_OPT_NUMBER,
     .offset = AT(preflight.slower_percent),
     .min = 0,
     .max = 100,
     .help = "a device so much below the median of its peers is slow"},
    {.name = "tolerance",
     .argument = "[CHECK=]PERCENT",
     .type = S4D_OPT_LIST,
     .offset = AT(preflight.tolerance),
     .help = "so much below the machine's rate is slow, in all checks or one; 10; may be repeated"},
    {.name = "threads",
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = AT(preflight.threads),
     .min = 1,
     .max = 4096,
     .help = "of BLAS, on every rank"},
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = AT(json),
     .help = "the record instead of the table"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Health check", .options = options},
                                                 S4D_WAITING_GROUP(AT(preflight.waiting)),
                                                 {.options = NULL}};

static const char *rate_text(const json_t *rate, bool flops, char *text, int size)
{
    if (!json_is_number(rate))
        snprintf(text, (size_t)size, "-");
    else if (flops)
        s4d_format_flops(json_number_value(rate), text, size);
    else
        s4d_format_bandwidth(json_number_value(rate), text, size);
    return text;
}

static bool in_flops(const json_t *check)
{
    return strcmp(json_string_value(json_object_get(check, "unit")), "FLOP/s") == 0;
}

static void print_check(const json_t *check)
{
    bool flops = in_flops(check);
    char size[32], least[32], median[32], expected[32];
    const json_t *n = json_object_get(check, "n");
    if (n)
        snprintf(size, sizeof size, "n = %lld", (long long)json_integer_value(n));
    else
        s4d_format_bytes(json_number_value(json_object_get(check, "bytes")), size, sizeof size);
    printf("%-12s %10s %16s %16s %7lld %16s\n", json_string_value(json_object_get(check, "check")),
           size, rate_text(json_object_get(check, "median"), flops, median, sizeof median),
           rate_text(json_object_get(check, "least"), flops, least, sizeof least),
           (long long)json_integer_value(json_object_get(check, "slowest_rank")),
           rate_text(json_object_get(check, "expected"), flops, expected, sizeof expected));
}

static double below_percent(const json_t *finding, const char *key)
{
    double rate = json_number_value(json_object_get(finding, "rate")),
           limit = json_number_value(json_object_get(finding, key));
    return limit > 0 ? 100 * (1 - rate / limit) : 0;
}

static void warn(const json_t *finding, const json_t *check)
{
    char rate[32], why[160] = "";
    double median = below_percent(finding, "median"), expected = below_percent(finding, "expected"),
           wrong = json_number_value(json_object_get(finding, "wrong"));
    long long members = (long long)json_integer_value(json_object_get(finding, "members"));
    int n = 0, size = (int)sizeof why;
    if (median > 0)
        n += snprintf(why + n, (size_t)(size - n), ", %.1f %% below the median of its peers",
                      median);
    if (expected > 0)
        n += snprintf(why + n, (size_t)(size - n), ", %.1f %% below the machine file", expected);
    if (wrong > 0)
        snprintf(why + n, (size_t)(size - n), ", %.0f WRONG VALUES", wrong);
    s4d_warn("%s: %s%s: %s%s", json_string_value(json_object_get(finding, "check")),
             members > 1 ? "the group of " : "",
             json_string_value(json_object_get(finding, "where")),
             rate_text(json_object_get(finding, "rate"), in_flops(check), rate, sizeof rate), why);
}

static const json_t *check_of(const json_t *record, const json_t *finding)
{
    const char *name = json_string_value(json_object_get(finding, "check"));
    json_t *checks = json_object_get(record, "checks"), *check = NULL;
    size_t i;
    json_array_foreach(checks, i, check)
    {
        if (strcmp(json_string_value(json_object_get(check, "check")), name) == 0)
            break;
    }
    return check;
}

void s4d_preflight_warn(const json_t *record)
{
    enum { MOST = 20 };
    json_t *slow = json_object_get(record, "slow"), *one;
    size_t i, n = json_array_size(slow);
    json_array_foreach(slow, i, one)
    {
        if (i < MOST)
            warn(one, check_of(record, one));
    }
    if (n > MOST)
        s4d_warn("and %zu more: --json has them all", n - MOST);
}

void s4d_preflight_print(const json_t *record)
{
    json_t *checks = json_object_get(record, "checks"), *one;
    const char *note = json_string_value(json_object_get(record, "note"));
    size_t i, n = json_array_size(json_object_get(record, "slow"));
    printf("%-12s %10s %16s %16s %7s %16s\n", "check", "size", "median", "least", "of rank",
           "machine file");
    json_array_foreach(checks, i, one) print_check(one);
    if (note[0])
        printf("# %s\n", note);
    printf("# %zu checks of %lld devices, slow or wrong in %zu  %s\n", json_array_size(checks),
           (long long)json_integer_value(json_object_get(record, "gpus")), n, n ? "FAILED" : "OK");
    fflush(stdout);
}

static int preflight(const struct config *c, struct s4d_world *world, int argc, char **argv)
{
    struct s4d_error err;
    json_t *record, *provenance = s4d_provenance(argc, argv);
    int rc = 0, code = s4d_preflight_run(&c->preflight, world, &record);
    if (record) {
        json_object_set(record, "provenance", provenance);
        if (c->json)
            rc = s4d_record_write(record, stdout, &err);
        else {
            s4d_provenance_print(provenance, stdout);
            s4d_preflight_print(record);
        }
        s4d_preflight_warn(record);
    }
    json_decref(record);
    json_decref(provenance);
    int failed = s4d_world_agree(world, rc ? &err : NULL);
    return failed ? failed : code;
}

static int run(struct s4d_world *world, int argc, char **argv)
{
    struct config c = {.preflight = s4d_preflight_config_default()};
    struct s4d_error err;
    int rc = s4d_options_argv(groups,
                              "Checks all devices in a few seconds: products, copies, sums. Exit "
                              "status 1: some are slow, or compute wrong values.",
                              argc, argv, &c, NULL, &err);
    int code = s4d_world_agree(world, rc < 0 ? &err : NULL);
    if (rc == 0 && code == 0)
        code = preflight(&c, world, argc, argv);
    s4d_options_free(groups, &c);
    return code;
}

const struct s4d_run_command s4d_run_preflight = {
    .name = "preflight",
    .summary = "health check: devices that are slower than their peers or a machine file",
    .run = run,
    .options = groups,
};
