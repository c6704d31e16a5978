/* SPDX-License-Identifier: Apache-2.0 */
/* nccl-tests -J writes one object with args, config (with the devices) and results. Records of
 * scale4d and scale4d-run are one object a line. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/nccl_tests.h"
#include "support/memory.h"
#include "support/quote.h"

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : 0;
}

static int unreadable(const char *file, int before, const json_error_t *why, struct s4d_error *err)
{
    char where[512];
    snprintf(where, sizeof where, "%s:%d", file, before + why->line);
    s4d_fail(err, S4D_EXIT_DATA, where, "is not JSON: %.160s", why->text);
    if (json_error_code(why) == json_error_premature_end_of_input)
        return s4d_hint(err, "the file is cut off: let the test run to its end");
    return -1;
}

/* Of every process nccl-tests lists the first device; one process has threads times GPUs. */
static void devices(struct s4d_nccl_tests *t, const json_t *config)
{
    const json_t *list = json_object_get(config, "devices"), *device;
    int each = (int)(number_of(config, "nthreads") * number_of(config, "ngpus"));
    const char **host = s4d_calloc(json_array_size(list) + 1, sizeof *host);
    int hosts = 0;
    size_t i;
    json_array_foreach(list, i, device)
    {
        const char *name = json_string_value(json_object_get(device, "hostname"));
        int known = 0;
        for (int j = 0; name != NULL && j < hosts; j++)
            known |= strcmp(host[j], name) == 0;
        if (name != NULL && !known)
            host[hosts++] = name;
    }
    if (each >= 1 && each <= 1024 && json_array_size(list) <= 1 << 20)
        t->ranks = each * (int)json_array_size(list);
    if (hosts > 0 && t->ranks % hosts == 0)
        t->ranks_per_node = t->ranks / hosts;
    free((void *)host);
}

static int groups(const json_t *config, const char *file, struct s4d_error *err)
{
    const json_t *list = json_object_get(config, "devices"), *device;
    size_t i;
    json_array_foreach(
        list, i, device) if (number_of(device, "group") !=
                             number_of(json_array_get(list, 0),
                                       "group")) return s4d_fail(err, S4D_EXIT_DATA, file,
                                                                 "several groups ran side by side, "
                                                                 "expected one of all ranks");
    return 0;
}

static int result(struct s4d_nccl_tests *t, const json_t *r, const char *where,
                  struct s4d_error *err)
{
    const json_t *body = json_object_get(r, "out_of_place");
    if (!json_is_object(body))
        body = json_object_get(r, "in_place");
    if (json_object_get(body, "cpu_time")) {
        s4d_fail(err, S4D_EXIT_DATA, where,
                 "holds the processor's time, expected that of the "
                 "collective");
        return s4d_hint(err, "run nccl-tests without -C");
    }
    if (!json_is_number(json_object_get(r, "size")) ||
        !json_is_number(json_object_get(body, "time")))
        return s4d_fail(err, S4D_EXIT_DATA, where,
                        "expected size, and time in out_of_place or in_place");
    return s4d_nccl_tests_add(t, number_of(r, "size"), number_of(body, "time"),
                              number_of(body, "alg_bw"), number_of(body, "bus_bw"), where, err);
}

static int nccl_tests(struct s4d_nccl_tests *t, const json_t *root, const char *behind,
                      const char *file, struct s4d_error *err)
{
    const json_t *results = json_object_get(root, "results"),
                 *config = json_object_get(root, "config"), *r;
    const char *program = json_string_value(json_array_get(json_object_get(root, "args"), 0));
    size_t i;
    t->format = "JSON of nccl-tests";
    if (behind[strspn(behind, " \t\r\n")] != '\0')
        return s4d_fail(err, S4D_EXIT_DATA, file, "expected one JSON object, found more behind it");
    if (!json_is_array(results))
        return s4d_fail(err, S4D_EXIT_DATA, file, "expected a list of results");
    if (groups(config, file, err))
        return -1;
    if (program != NULL)
        s4d_nccl_tests_program(t, program);
    devices(t, config);
    json_array_foreach(results, i, r)
    {
        char where[512];
        snprintf(where, sizeof where, "%s: results[%d]", file, (int)i);
        if (result(t, r, where, err))
            return -1;
    }
    return 0;
}

/* One record of ours; all must be of one operation and group. */
static int record(struct s4d_nccl_tests *t, const json_t *r, const char *where,
                  struct s4d_error *err)
{
    const char *kind = json_string_value(json_object_get(r, "kind")),
               *op = json_string_value(json_object_get(r, "op"));
    double ranks = number_of(r, "ranks");
    if (kind == NULL || strcmp(kind, "collective") != 0)
        return s4d_fail(err, S4D_EXIT_DATA, where, "expected a record of kind collective, got %s",
                        s4d_quote(kind ? kind : "none").text);
    if (op == NULL || !(ranks >= 2 && ranks <= 1 << 20))
        return s4d_fail(err, S4D_EXIT_DATA, where, "expected op and ranks");
    if (number_of(r, "groups") > 1)
        return s4d_fail(err, S4D_EXIT_DATA, where,
                        "several groups ran side by side, expected one of all ranks");
    if (t->n > 0 && (strcmp(t->op, op) != 0 || t->ranks != (int)ranks))
        return s4d_fail(err, S4D_EXIT_DATA, where,
                        "expected records of one operation and group, got %s on %d ranks after %s "
                        "on %d",
                        s4d_quote(op).text, (int)ranks, s4d_quote(t->op).text, t->ranks);
    snprintf(t->op, sizeof t->op, "%s", op);
    t->ranks = (int)ranks;
    t->format = json_object_get(r, "machine") ? "records of scale4d collective"
                                              : "records of scale4d-run collective";
    return s4d_nccl_tests_add(t, number_of(r, "bytes"), number_of(r, "time_s") * 1e6,
                              number_of(r, "algbw_Bps") * 1e-9, number_of(r, "busbw_Bps") * 1e-9,
                              where, err);
}

static int records(struct s4d_nccl_tests *t, const char *text, size_t n, const char *file,
                   struct s4d_error *err)
{
    int line = 0;
    for (const char *at = text, *next; at < text + n; at = next) {
        const char *end = memchr(at, '\n', (size_t)(text + n - at));
        size_t length = end ? (size_t)(end - at) : (size_t)(text + n - at);
        next = at + length + (end != NULL);
        line++;
        if (strspn(at, " \t\r") >= length)
            continue;
        json_error_t why;
        json_t *r = json_loadb(at, length, 0, &why);
        if (r == NULL)
            return unreadable(file, line - 1, &why, err);
        char where[512];
        snprintf(where, sizeof where, "%s:%d", file, line);
        int rc = record(t, r, where, err);
        json_decref(r);
        if (rc)
            return -1;
    }
    return 0;
}

int s4d_nccl_tests_json(struct s4d_nccl_tests *t, const char *text, size_t n, const char *file,
                        struct s4d_error *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, n, JSON_DISABLE_EOF_CHECK, &why);
    if (root == NULL)
        return unreadable(file, 0, &why, err);
    int rc;
    if (json_object_get(root, "kind"))
        rc = records(t, text, n, file, err);
    else if (json_object_get(root, "results"))
        rc = nccl_tests(t, root, text + why.position, file, err);
    else
        rc =
            s4d_fail(err, S4D_EXIT_DATA, file,
                     "expected the JSON of nccl-tests -J, with results, or records of collectives");
    json_decref(root);
    return rc;
}
