/* SPDX-License-Identifier: Apache-2.0 */
#include "support/share.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/quote.h"
#include "support/units.h"

enum { MOST = 1 << 24 };

/* In this order: under Slurm, mpirun's ranks also have SLURM_PROCID, which is that of a node. */
static const struct {
    const char *rank, *size;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* A variable that must be there, in [min, max]. */
static int number(const char *name, int64_t min, int64_t max, int64_t *value, struct s4d_error *err)
{
    const char *text = variable(name);
    struct s4d_error why;
    if (text != NULL && s4d_parse_int(text, min, max, value, &why) == 0)
        return 0;
    s4d_fail(err, S4D_EXIT_USAGE, name, "expected %lld to %lld, %s%s", (long long)min,
             (long long)max, text ? "got " : "is not set", text ? s4d_quote(text).text : "");
    return s4d_hint(err, "--share 1/1 runs all experiments here, --share 2/8 the second eighth");
}

static int ranks(int64_t *index, int64_t *of, const char **from, struct s4d_error *err)
{
    *index = 0;
    *of = 1;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *rank = launchers[i].rank, *size = launchers[i].size;
        if (strcmp(rank, "SLURM_PROCID") == 0 ? variable(size) == NULL : variable(rank) == NULL)
            continue;
        *from = rank;
        return number(size, 1, MOST, of, err) || number(rank, 0, *of - 1, index, err) ? -1 : 0;
    }
    return 0;
}

static int array(int64_t *index, int64_t *of, const char **from, struct s4d_error *err)
{
    int64_t id, min, max, count, step = 1;
    *index = 0;
    *of = 1;
    if (variable("SLURM_ARRAY_TASK_ID") == NULL)
        return 0;
    if (number("SLURM_ARRAY_TASK_MIN", 0, MOST, &min, err) ||
        number("SLURM_ARRAY_TASK_MAX", min, MOST, &max, err) ||
        number("SLURM_ARRAY_TASK_COUNT", 1, MOST, &count, err) ||
        number("SLURM_ARRAY_TASK_ID", min, max, &id, err) ||
        (variable("SLURM_ARRAY_TASK_STEP") != NULL &&
         number("SLURM_ARRAY_TASK_STEP", 1, MOST, &step, err)))
        return -1;
    if (max - min != (count - 1) * step || (id - min) % step != 0) {
        s4d_fail(err, S4D_EXIT_USAGE, "SLURM_ARRAY_TASK_COUNT",
                 "expected tasks without gaps from %lld to %lld, these are %lld", (long long)min,
                 (long long)max, (long long)count);
        return s4d_hint(err, "--array=0-9 is without; what is finished is not done again");
    }
    *index = (id - min) / step;
    *of = count;
    *from = "SLURM_ARRAY_TASK_ID";
    return 0;
}

int s4d_share_from_environment(struct s4d_share *share, struct s4d_error *err)
{
    int64_t rank, size, task, tasks;
    const char *from = "";
    if (ranks(&rank, &size, &from, err) || array(&task, &tasks, &from, err))
        return -1;
    if (size * tasks > MOST)
        return s4d_fail(err, S4D_EXIT_USAGE, from, "expected at most %d shares, got %lld", MOST,
                        (long long)(size * tasks));
    *share = (struct s4d_share){(int)(task * size + rank), (int)(size * tasks), from};
    return 0;
}

int s4d_share_parse(const char *text, void *field, struct s4d_error *err)
{
    char first[16];
    const char *slash = strchr(text, '/');
    int64_t index = 0, of = 0;
    struct s4d_error why;
    if (slash != NULL && slash - text < (int)sizeof first) {
        snprintf(first, sizeof first, "%.*s", (int)(slash - text), text);
        if (s4d_parse_int(slash + 1, 1, MOST, &of, &why) == 0 &&
            s4d_parse_int(first, 1, of, &index, &why) == 0) {
            *(struct s4d_share *)field = (struct s4d_share){(int)index - 1, (int)of, "--share"};
            return 0;
        }
    }
    return s4d_fail(err, S4D_EXIT_USAGE, "--share",
                    "expected one of so many, as 2/8 (the second of eight), got %s",
                    s4d_quote(text).text);
}
