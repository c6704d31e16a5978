/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's persistent state: initial weights and scalars, and whole parameters from the
 * ranks' shards. */
#include <math.h>
#include <stdlib.h>

#include "schedule/initial.h"
#include "support/memory.h"
#include "tests/lib/interpreter_internal.h"

double s4d_interpreter_initial(const struct s4d_param *param,
                               const struct s4d_interpreter_options *options, int64_t index)
{
    return s4d_initial_weight(param, options->weight_seed, options->perturb, index);
}

static void set_scalar(struct s4d_interpreter *in, int rank, int tensor, double value)
{
    if (tensor >= 0)
        s4d_interpreter_set(in, rank, tensor, 0, value);
}

void s4d_state_create(struct s4d_interpreter *in)
{
    for (int rank = 0; rank < in->ranks; rank++) {
        const struct s4d_program *p = s4d_rank_program(in, rank);
        set_scalar(in, rank, p->lr, p->options.learning_rate);
        set_scalar(in, rank, p->loss_scale, in->options.loss_scale);
        for (int q = 0; q < p->n_params; q++)
            for (int64_t i = 0; i < p->params[q].shard_elements; i++) {
                const struct s4d_param *param = &p->params[q];
                int64_t g = s4d_param_global_index(p, param, in->coordinate[rank], i);
                double w = g < 0 ? 0 : s4d_interpreter_initial(param, &in->options, g);
                s4d_interpreter_set(in, rank, param->master, i, w);
                s4d_interpreter_set(in, rank, param->working, i, w);
            }
    }
}

/* One rank's shard into the whole; -1 at the first disagreement. */
static int merge(const struct s4d_interpreter *in, const struct s4d_param *param, int tensor,
                 int rank, double *whole, struct s4d_error *err)
{
    for (int64_t i = 0; i < param->shard_elements; i++) {
        int64_t g = s4d_param_global_index(in->p, param, in->coordinate[rank], i);
        double value = s4d_interpreter_get(in, rank, tensor, i);
        if (g < 0 && value != 0)
            return s4d_fail(err, S4D_EXIT_BUG, param->name,
                            "rank %d, element %lld is padding but holds %g", rank, (long long)i,
                            value);
        if (g >= 0 && !isnan(whole[g]) && whole[g] != value)
            return s4d_fail(err, S4D_EXIT_BUG, param->name,
                            "rank %d holds %.17g for element %lld, another rank %.17g", rank, value,
                            (long long)g, whole[g]);
        if (g >= 0)
            whole[g] = value;
    }
    return 0;
}

int s4d_interpreter_whole(const struct s4d_interpreter *in, const struct s4d_param *param,
                          enum s4d_interpreter_what what, double *whole, struct s4d_error *err)
{
    int tensor = what == S4D_WHOLE_MASTER    ? param->master
                 : what == S4D_WHOLE_WORKING ? param->working
                                             : param->gradient;
    int64_t n = param->rows * s4d_param_cols(param);
    for (int64_t i = 0; i < n; i++)
        whole[i] = NAN;
    for (int rank = 0; rank < in->ranks; rank++)
        if (merge(in, param, tensor, rank, whole, err))
            return -1;
    for (int64_t i = 0; i < n; i++)
        if (isnan(whole[i]))
            return s4d_fail(err, S4D_EXIT_BUG, param->name, "element %lld is a NaN or held by none",
                            (long long)i);
    return 0;
}
