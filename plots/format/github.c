/* SPDX-License-Identifier: Apache-2.0 */
/* github-action-benchmark's custom input: a JSON array of {name, unit, value, range, extra}
 * (benchmark-action/github-action-benchmark 1.22, README and src/extract.ts). The action takes one
 * array in which more is better and another in which less is. A benchmark has one value: the last
 * night's. */
#include <stdlib.h>
#include <string.h>

#include "plots/format/format.h"
#include "plots/track/metrics.h"
#include "plots/track/store.h" /* for: s4d_date */
#include "support/memory.h"
#include "support/record.h"

static const char *text_at(const json_t *record, const char *path)
{
    const char *text = json_string_value(s4d_at_path(record, path));
    return text ? text : "unknown";
}

static json_t *entry(const struct s4d_outcome *o, const struct s4d_value *v)
{
    char *name = s4d_asprintf("%s: %s", o->label, v->name),
         *range = s4d_asprintf("± %.4g", v->spread),
         *extra = s4d_asprintf("night %s\ncommit %s\n%d sample%s%s%s", s4d_date(o->night).text,
                               text_at(o->record, "provenance.commit"), v->n, v->n == 1 ? "" : "s",
                               v->worse ? "\n" : "", v->worse ? v->worse : "");
    json_t *e = json_pack("{s:s, s:s, s:f}", "name", name, "unit", v->unit, "value", v->value);
    if (v->n > 1)
        json_object_set_new(e, "range", json_string(range));
    json_object_set_new(e, "extra", json_string(extra));
    free(name);
    free(range);
    free(extra);
    return e;
}

static int write(const struct s4d_outcomes *outcomes, int direction, FILE *out,
                 struct s4d_error *err)
{
    json_t *all = json_array();
    for (int i = 0; i < outcomes->n; i++)
        for (int k = 0; k < outcomes->v[i].n; k++)
            if (outcomes->v[i].last && outcomes->v[i].v[k].direction == direction)
                json_array_append_new(all, entry(&outcomes->v[i], &outcomes->v[i].v[k]));
    int rc = 0;
    if (json_array_size(all) == 0)
        rc = s4d_fail(err, S4D_EXIT_DATA, "", "no record has a number of which %s is better",
                      direction > 0 ? "more" : "less");
    else if (json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) || putc('\n', out) < 0)
        rc = s4d_fail(err, S4D_EXIT_OUTPUT, "", "the JSON cannot be written");
    json_decref(all);
    return rc;
}

int s4d_write_bigger_is_better(const struct s4d_outcomes *outcomes, FILE *out,
                               struct s4d_error *err)
{
    return write(outcomes, 1, out, err);
}

int s4d_write_smaller_is_better(const struct s4d_outcomes *outcomes, FILE *out,
                                struct s4d_error *err)
{
    return write(outcomes, -1, out, err);
}
