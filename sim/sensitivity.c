/* SPDX-License-Identifier: Apache-2.0 */
/* Children vary their own copy of the machine: it is the parent's memory, copied when written. */
#include "sim/sensitivity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/isolate.h"
#include "sim/simulate_one.h"
#include "support/memory.h"
#include "support/progress.h"

const double s4d_variation[S4D_VARIED] = {[S4D_HALVED] = 0.5, [S4D_DOUBLED] = 2};

static const char platform_links[] = "links.net.*";

struct study {
    const struct s4d_simulation *s;
    struct s4d_grid grid;
    struct s4d_sensitivity *result;
    unsigned tags;
    int done;
};

/* What a child answers. */
struct answer {
    bool same;
    double iteration_s;
};

/* All links of the platform file, beside the differences that there are. */
static int vary_platform(const struct s4d_simulation *s, double factor,
                         struct s4d_scenario *scenario, struct s4d_error *err)
{
    char setting[64];
    *scenario = s->scenario ? *s->scenario : (struct s4d_scenario){.placement = {.seed = 1}};
    snprintf(setting, sizeof setting, "%s=%g", platform_links, factor);
    return s4d_differences_add(&scenario->differences, setting, err);
}

static int vary(void *context, int index, void *result, struct s4d_error *err)
{
    const struct study *study = context;
    const char *key = study->result->entry[index / S4D_VARIED].key;
    double factor = s4d_variation[index % S4D_VARIED];
    struct answer *answer = result;
    struct s4d_simulation s = *study->s;
    struct s4d_scenario scenario;
    struct s4d_result r;
    if (strcmp(key, platform_links) == 0) {
        if (vary_platform(study->s, factor, &scenario, err))
            return -1;
        s.scenario = &scenario;
    } else if (!s4d_machine_scale((struct s4d_machine *)s.machine, key, factor)) {
        answer->same = true;
        return 0;
    }
    if (s4d_simulation_check(&s, err) || s4d_simulate_one(&s, &study->grid, &r, err))
        return -1;
    answer->iteration_s = r.run.iteration_time_s;
    return 0;
}

static void show_progress(void *context, int index)
{
    struct study *study = context;
    (void)index;
    s4d_progress("varying entries", ++study->done, study->result->n * S4D_VARIED);
}

static void collect(void *context, const char *key, enum s4d_tag tag, const char *source,
                    double value)
{
    struct study *study = context;
    struct s4d_sensitivity *r = study->result;
    if (study->tags & 1U << tag)
        s4d_push(r->entry, r->n, r->cap,
                 (struct s4d_sensitive){
                     .key = s4d_strdup(key), .source = source, .tag = tag, .value = value});
}

static void take_answers(struct s4d_sensitivity *r, const struct answer *answers,
                         const struct s4d_error *errors)
{
    double base_s = r->base.run.iteration_time_s;
    for (int i = 0; i < r->n * S4D_VARIED; i++) {
        struct s4d_sensitive *e = &r->entry[i / S4D_VARIED];
        struct s4d_varied *v = &e->varied[i % S4D_VARIED];
        bool simulated = errors[i].exit == S4D_EXIT_OK && !answers[i].same;
        *v = (struct s4d_varied){.same = errors[i].exit == S4D_EXIT_OK && answers[i].same,
                                 .iteration_s = simulated ? answers[i].iteration_s : NAN,
                                 .why = errors[i]};
        if (simulated)
            e->effect = fmax(e->effect, fabs(v->iteration_s / base_s - 1));
    }
}

/* Descending effect; equals stay in the machine's order. */
static void sort(struct s4d_sensitivity *r)
{
    for (int i = 1; i < r->n; i++) {
        struct s4d_sensitive moved = r->entry[i];
        int at = i;
        for (; at > 0 && r->entry[at - 1].effect < moved.effect; at--)
            r->entry[at] = r->entry[at - 1];
        r->entry[at] = moved;
    }
}

int s4d_sensitivity(const struct s4d_simulation *s, unsigned tags, struct s4d_sensitivity *result,
                    struct s4d_error *err)
{
    struct study study = {.s = s, .result = result, .tags = tags};
    *result = (struct s4d_sensitivity){.n = 0};
    if (s4d_simulate(s, &result->base, err))
        return -1;
    study.grid = result->base.grid;
    s4d_machine_visit(s->machine, collect, &study);
    if (s->machine->fabric.file)
        collect(&study, platform_links, S4D_TAG_READ, s->machine->fabric.file, NAN);
    size_t n = (size_t)result->n * S4D_VARIED;
    struct answer *answers = s4d_calloc(n + 1, sizeof *answers);
    struct s4d_error *errors = s4d_calloc(n + 1, sizeof *errors);
    s4d_isolated(vary, &study, (int)n, s->workers > 1 ? s->workers : 1, answers, sizeof *answers,
                 errors, show_progress);
    s4d_progress_end();
    take_answers(result, answers, errors);
    sort(result);
    free(answers);
    free(errors);
    return 0;
}

void s4d_sensitivity_free(struct s4d_sensitivity *result)
{
    for (int i = 0; i < result->n; i++)
        free(result->entry[i].key);
    free(result->entry);
    *result = (struct s4d_sensitivity){.n = 0};
}
