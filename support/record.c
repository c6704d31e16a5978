/* SPDX-License-Identifier: Apache-2.0 */
/* Records and their provenance. With SOURCE_DATE_EPOCH (reproducible-builds.org) two runs of one
 * command give the same bytes. */
#include "support/record.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/memory.h"
#include "support/quote.h"
#include "support/units.h"

#ifndef S4D_COMMIT
#define S4D_COMMIT "unknown"
#endif

extern char **environ;

const char *const s4d_version = "0.1.0";
const char *const s4d_commit = S4D_COMMIT;
const char *const s4d_model_version = "2";

static const int64_t last_time_s = 253402300799; /* 9999-12-31T23:59:59Z */

/* A JSON string of any bytes: what is no UTF-8 becomes '?'. */
static json_t *text_of(const char *text)
{
    json_t *json = json_string(text);
    if (json)
        return json;
    char *copy = s4d_strdup(text);
    for (char *c = copy; *c; c++) {
        if ((unsigned char)*c > 126)
            *c = '?';
    }
    json = json_string(copy);
    free(copy);
    return json;
}

/* The time of SOURCE_DATE_EPOCH; false where it is not set or not a time. */
static bool reproducible_time(int64_t *t_s)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    if (!epoch || !*epoch)
        return false;
    bool good = s4d_parse_int(epoch, 0, last_time_s, t_s, NULL) == 0;
    if (!good)
        s4d_warn("SOURCE_DATE_EPOCH is not a number of seconds: not used");
    return good;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* SLURM_JWT authenticates its user, and a record is made to be passed on. */
static bool is_secret(const char *variable)
{
    static const char *const words[] = {"JWT", "TOKEN", "SECRET", "PASSW", "KEY=", "_AUTH"};
    const char *end = strchr(variable, '=');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(variable, words[i]);
        if (at && at <= end)
            return true;
    }
    return false;
}

/* What Open MPI's launcher tells its processes about themselves: addresses, folders, ranks, the
 * job's number and its key (orte_precondition_transports). It says nothing of a result that the
 * record does not have elsewhere, or is new in every job. */
static bool is_plumbing(const char *variable)
{
    static const char *const starts[] = {
        "OMPI_MCA_orte_",     "OMPI_MCA_ess",          "OMPI_MCA_pmix",
        "OMPI_MCA_shmem_RUN", "OMPI_MCA_initial_wdir", "OMPI_FILE_LOCATION",
        "OMPI_ARGV",          "OMPI_COMMAND",          "OMPI_FIRST_RANKS",
        "OMPI_COMM_WORLD_",   "OMPI_UNIVERSE_SIZE",    "OMPI_APP_CTX_",
        "OMPI_NUM_APP_CTX",   "OMPI_ALLOW_RUN_AS_ROOT"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (starts_with(variable, starts[i]))
            return true;
    return false;
}

static bool is_recorded(const char *variable, bool reproducible)
{
    if (!strchr(variable, '=') || is_secret(variable) || is_plumbing(variable))
        return false;
    /* Those of launchers are other ones in every job. */
    return starts_with(variable, "SCALE4D_") || starts_with(variable, "OMP_") ||
           starts_with(variable, "OPENBLAS_") || starts_with(variable, "NCCL_") ||
           starts_with(variable, "MPIR_CVAR_") ||
           (!reproducible && (starts_with(variable, "SLURM_") || starts_with(variable, "OMPI_")));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static json_t *environment(bool reproducible)
{
    char **v = NULL;
    int n = 0, cap = 0;
    for (char **e = environ; e && *e; e++) {
        if (is_recorded(*e, reproducible))
            s4d_push(v, n, cap, *e);
    }
    if (n > 1)
        qsort(v, (size_t)n, sizeof *v, by_text);
    json_t *object = json_object();
    for (int i = 0; i < n; i++) {
        const char *equals = strchr(v[i], '=');
        char *name = s4d_strdup(v[i]);
        name[equals - v[i]] = '\0';
        json_object_set_new(object, name, text_of(equals + 1));
        free(name);
    }
    free(v);
    return object;
}

json_t *s4d_provenance(int argc, char **argv)
{
    int64_t t_s = 0;
    bool reproducible = reproducible_time(&t_s);
    time_t t = reproducible ? (time_t)t_s : time(NULL);
    struct tm utc;
    char when[32] = "", host[256] = "reproducible";
    if (gmtime_r(&t, &utc))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (!reproducible && gethostname(host, sizeof host - 1))
        snprintf(host, sizeof host, "unknown");
    host[sizeof host - 1] = '\0';
    json_t *arguments = json_array();
    for (int i = 0; i < argc; i++)
        json_array_append_new(arguments, text_of(argv[i]));
    json_t *p = json_object();
    json_object_set_new(p, "tool", json_string("scale4d"));
    json_object_set_new(p, "version", json_string(s4d_version));
    json_object_set_new(p, "commit", text_of(s4d_commit));
    json_object_set_new(p, "argv", arguments);
    json_object_set_new(p, "host", text_of(host));
    json_object_set_new(p, "time", json_string(when));
    json_object_set_new(p, "environment", environment(reproducible));
    return p;
}

int s4d_record_write(json_t *record, FILE *out, struct s4d_error *err)
{
    S4D_ASSERT(json_is_object(record), "a record is an object");
    errno = 0;
    int failed = json_dumpf(record, out, JSON_REAL_PRECISION(17));
    if (failed || fputc('\n', out) == EOF || fflush(out) || ferror(out))
        return s4d_fail(err, S4D_EXIT_OUTPUT, "", "cannot write the record: %s",
                        errno ? strerror(errno) : "unknown reason");
    return 0;
}

static const char *field(const json_t *provenance, const char *key)
{
    const char *text = json_string_value(json_object_get(provenance, key));
    return text ? text : "?";
}

void s4d_provenance_print(const json_t *provenance, FILE *out)
{
    fprintf(out, "# %s %s  commit %s  %s  host ", field(provenance, "tool"),
            field(provenance, "version"), field(provenance, "commit"), field(provenance, "time"));
    s4d_print_line(field(provenance, "host"), out);
    fputs("\n#", out);
    size_t i;
    json_t *value;
    json_array_foreach(json_object_get(provenance, "argv"), i, value)
    {
        fputc(' ', out);
        s4d_print_line(json_string_value(value), out);
    }
    fputc('\n', out);
    const char *key;
    json_object_foreach(json_object_get(provenance, "environment"), key, value)
    {
        fputs("# ", out);
        s4d_print_line(key, out);
        fputc('=', out);
        s4d_print_line(json_string_value(value), out);
        fputc('\n', out);
    }
}

/* FNV-1a, 64 bit (Fowler, Noll, Vo; draft-eastlake-fnv). */
void s4d_hash(const void *bytes, size_t n, char hex[17])
{
    uint64_t h = 0xcbf29ce484222325u;
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    snprintf(hex, 17, "%016llx", (unsigned long long)h);
}
