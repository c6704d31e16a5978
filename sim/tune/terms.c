/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/terms.h"

#include <math.h>

#include "sim/scenario.h"
#include "sim/tune/estimate.h"

static double simulated_s(const struct s4d_run *run, enum s4d_term term)
{
    switch (term) {
    case S4D_TERM_GEMM:
        return run->gemm_time_s;
    case S4D_TERM_KERNELS:
        return run->busy_s[S4D_STREAM_COMPUTE] - run->gemm_time_s;
    case S4D_TERM_GATHER_Z:
        return run->busy_s[S4D_STREAM_Z_GATHER];
    case S4D_TERM_SCATTER_Z:
        return run->busy_s[S4D_STREAM_Z_SCATTER];
    case S4D_TERM_REDUCE_Y:
        return run->busy_s[S4D_STREAM_Y];
    case S4D_TERM_REDUCE_X:
        return run->busy_s[S4D_STREAM_X];
    case S4D_TERM_REDUCE_DATA:
        return run->busy_s[S4D_STREAM_DATA];
    default:
        return run->busy_s[S4D_STREAM_Z_DATA] + run->busy_s[S4D_STREAM_X_Y_Z];
    }
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* The three estimates of one configuration. */
struct estimates {
    const struct s4d_published_machine *table;
    struct s4d_estimate published, links, model;
};

static int estimate_all(struct estimates *e, const struct s4d_simulation *s,
                        const struct s4d_result *r, struct s4d_error *err)
{
    struct s4d_options o = s->options;
    struct s4d_counts counts;
    struct s4d_batch_passes passes;
    struct s4d_rates rates; /* of a single link the model knows nothing, and says what it would */
    bool rated = s4d_scenario_rates(&rates, s->machine, s->gpus, s->scenario, NULL) == 0;
    struct s4d_estimator k = {
        .machine = s->machine, .model = &s->workload->model, .rates = rated ? &rates : NULL};
    o.micro_batch = r->micro_batch;
    k.wires = s4d_wires_create(s->machine, s->gpus, err);
    if (!k.wires)
        return -1;
    int rc = s4d_counts_create(&counts, k.model, &r->grid, &o, err);
    if (rc == 0) {
        s4d_passes_common(&passes, &k, &counts, &r->grid, &o);
        s4d_passes_complete(&passes, &k, &counts, &r->grid, &o);
        e->model = s4d_estimate_make(&passes, &k, &r->grid, &o);
        e->links = s4d_estimate_published(&k, &counts, &r->grid, &o, NULL);
        e->table = s4d_published_machine_find(s->machine->name);
        if (e->table)
            e->published = s4d_estimate_published(&k, &counts, &r->grid, &o, e->table);
        s4d_counts_free(&counts);
    }
    s4d_wires_free(k.wires);
    return rc;
}

json_t *s4d_terms_record(const struct s4d_simulation *s, const struct s4d_result *r,
                         struct s4d_error *err)
{
    struct estimates e = {.table = NULL};
    if (estimate_all(&e, s, r, err))
        return NULL;
    json_t *terms = json_array();
    for (int t = 0; t < S4D_TERMS; t++) {
        bool printed = t >= S4D_TERM_GATHER_Z && t <= S4D_TERM_REDUCE_DATA;
        json_array_append_new(
            terms, json_pack("{s:s, s:o, s:o, s:o, s:o}", "term", s4d_term_names[t], "published_s",
                             number(printed && e.table ? e.published.term_s[t] : NAN), "links_s",
                             number(printed ? e.links.term_s[t] : NAN), "model_s",
                             number(e.model.term_s[t]), "simulated_s",
                             number(simulated_s(&r->run, (enum s4d_term)t))));
    }
    return json_pack("{s:o, s:o, s:{s:o, s:o, s:o, s:o}}", "source",
                     e.table ? json_string(e.table->source) : json_null(), "terms", terms, "total",
                     "published_s", number(e.table ? e.published.total_s : NAN), "links_s",
                     number(e.links.total_s), "model_s", number(e.model.total_s), "simulated_s",
                     number(r->run.iteration_time_s));
}
