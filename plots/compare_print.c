/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for people and as a record. */
#include <math.h>
#include <stdlib.h>

#include "plots/compare.h"
#include "support/memory.h"

/* The results that are shown, in this order, where both records have them. */
static const char *const shown[] = {
    "flops_per_s", "iteration_time_s", "tokens_per_s", "memory_peak_bytes", "exposed_s.compute",
    "exposed_s.x", "exposed_s.y",      "exposed_s.z",  "exposed_s.data",    "exposed_s.other",
    "busbw_Bps",   "algbw_Bps",        "time_s",
};
enum { SHOWN = sizeof shown / sizeof *shown };

/* +1.25, 0 for the same, - where it is missing; in percent. */
static void format_change(double old, double new, char *text, size_t size)
{
    if (isnan(old) || isnan(new))
        snprintf(text, size, "-");
    else if (old == new)
        snprintf(text, size, "0");
    else if (old == 0)
        snprintf(text, size, "new");
    else
        snprintf(text, size, "%+.2f", 100 * (new / old - 1));
}

static void print_pair(const struct s4d_pair *p, FILE *out)
{
    static const char *const columns[] = {"iteration_time_s", "tokens_per_s", "memory_peak_bytes",
                                          "time_s"};
    static const char *const parts[] = {"compute", "x", "y", "z", "data", "other"};
    char *label = s4d_inputs_label(p->inputs), text[32];
    double old = p->merit ? s4d_compare_number(p->old, p->merit) : NAN,
           new = p->merit ? s4d_compare_number(p->new, p->merit) : NAN;
    format_change(old, new, text, sizeof text);
    fprintf(out, "%11.4g %11.4g %8s", old, new, text);
    for (int i = 0; i < 3; i++) {
        const char *key = columns[i];
        if (i == 0 && isnan(s4d_compare_number(p->old, key)))
            key = columns[3]; /* a collective */
        format_change(s4d_compare_number(p->old, key), s4d_compare_number(p->new, key), text,
                      sizeof text);
        fprintf(out, " %8s", text);
    }
    for (int i = 0; i < 6; i++) {
        char *key = s4d_asprintf("exposed_s.%s", parts[i]);
        double d = s4d_compare_number(p->new, key) - s4d_compare_number(p->old, key);
        if (isnan(d))
            fprintf(out, " %8s", "-");
        else
            fprintf(out, " %+8.3f", 1e3 * d);
        free(key);
    }
    fprintf(out, "  %s%s\n", label, p->beyond ? "  <-- beyond" : "");
    if (p->differs)
        fprintf(out, "#   simulated, and not the same; first %s\n", p->differs);
    free(label);
}

static void print_only(const char *which, const json_t *list, FILE *out)
{
    size_t i;
    json_t *inputs;
    json_array_foreach((json_t *)list, i, inputs)
    {
        char *label = s4d_inputs_label(inputs);
        fprintf(out, "# only in %s: %s\n", which, label);
        free(label);
    }
}

void s4d_comparison_print(const struct s4d_comparison *c, double threshold, FILE *out)
{
    fprintf(out, "%11s %11s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "old", "new", "change",
            "time", "tokens/s", "memory", "compute", "x", "y", "z", "data", "other");
    fprintf(out, "%11s %11s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "(FLOP/s,", "(bus B/s)",
            "(%)", "(%)", "(%)", "(%)", "(ms)", "(ms)", "(ms)", "(ms)", "(ms)", "(ms)");
    for (int i = 0; i < c->n; i++)
        print_pair(&c->pair[i], out);
    print_only("OLD", c->only_old, out);
    print_only("NEW", c->only_new, out);
    bool failed = c->beyond > 0 || c->missing > 0;
    fprintf(out, "# %d compared, ", c->n);
    if (isnan(threshold))
        fprintf(out, "%d simulated ones not the same", c->beyond);
    else
        fprintf(out, "%d beyond %+.3g %%", c->beyond, 100 * threshold);
    if (c->missing > 0)
        fprintf(out, ", %d of OLD missing from NEW", c->missing);
    fprintf(out, "  %s\n", failed ? "FAILED" : "OK");
}

static json_t *pair_record(const struct s4d_pair *p)
{
    json_t *results = json_object(), *record;
    for (int i = 0; i < SHOWN; i++) {
        double old = s4d_compare_number(p->old, shown[i]),
               new = s4d_compare_number(p->new, shown[i]);
        if (isnan(old) || isnan(new))
            continue;
        json_t *change = json_pack("{s:f, s:f}", "old", old, "new", new);
        json_object_set_new(change, "change", old != 0 ? json_real(new / old - 1) : json_null());
        json_object_set_new(results, shown[i], change);
    }
    record = json_pack("{s:O, s:o, s:b, s:b}", "inputs", p->inputs, "results", results, "simulated",
                       p->simulated, "beyond", p->beyond);
    if (p->simulated)
        json_object_set_new(record, "first_difference",
                            p->differs ? json_string(p->differs) : json_null());
    return record;
}

json_t *s4d_comparison_record(const struct s4d_comparison *c, double threshold)
{
    json_t *pairs = json_array();
    for (int i = 0; i < c->n; i++)
        json_array_append_new(pairs, pair_record(&c->pair[i]));
    return json_pack("{s:s, s:o, s:o, s:O, s:O, s:i, s:i}", "kind", "compare", "threshold",
                     isnan(threshold) ? json_null() : json_real(threshold), "pairs", pairs,
                     "only_old", c->only_old, "only_new", c->only_new, "beyond", c->beyond,
                     "missing", c->missing);
}
