/* SPDX-License-Identifier: Apache-2.0 */
/* Weights and gradients between the ranks' shards and one file. Every rank reads its own shards;
 * rank 0 writes, and fetches the others' one by one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/run/train.h"
#include "real/checkpoint.h"
#include "real/state.h"
#include "support/memory.h"

enum { TAG = 7 };

/* A run that breaks off may have saved them; from them come NaNs alone. */
static int check_weights(const char *file, const struct s4d_param *q, const double *w,
                         struct s4d_error *err)
{
    for (int64_t i = 0; i < q->shard_elements; i++)
        if (!isfinite(w[i]))
            return s4d_fail(err, S4D_EXIT_DATA, file, "%s: expected finite weights, found %g",
                            q->hf_name ? q->hf_name : q->name, w[i]);
    return 0;
}

int s4d_train_load(struct s4d_train *t, const char *file, struct s4d_error *err)
{
    struct s4d_checkpoint *c;
    int coordinate[S4D_AXES], rc = 0;
    s4d_grid_coordinates(&t->program.grid, t->world->rank, coordinate);
    if (s4d_checkpoint_open(&t->program, file, &c, err))
        return -1;
    for (int i = 0; i < t->program.n_params && !rc; i++, t->beats++) {
        const struct s4d_param *param = &t->program.params[i];
        double *w = s4d_malloc((size_t)param->shard_elements * sizeof *w);
        rc = s4d_checkpoint_read(c, i, coordinate, S4D_DTYPE_F64, w, err);
        if (!rc)
            rc = check_weights(file, param, w, err);
        if (!rc)
            rc = s4d_state_write_weights(t->executor, &t->device, param, w, err);
        free(w);
    }
    s4d_checkpoint_close(c);
    return rc;
}

struct job {
    struct s4d_train *t;
    bool gradients;
    enum s4d_dtype as;
    double scale; /* of the loss, in the gradients */
};

/* This rank's shard in the type of the file. */
static int own_shard(struct job *j, int param, void *shard, struct s4d_error *err)
{
    const struct s4d_param *q = &j->t->program.params[param];
    double *values = s4d_malloc((size_t)q->shard_elements * sizeof *values);
    int rc = s4d_state_read(j->t->executor, &j->t->device, j->gradients ? q->gradient : q->master,
                            values, err);
    for (int64_t i = 0; i < q->shard_elements && !rc; i++) {
        if (j->as == S4D_DTYPE_F64)
            ((double *)shard)[i] = values[i] / j->scale;
        else
            ((float *)shard)[i] = (float)(values[i] / j->scale);
    }
    free(values);
    j->t->beats++;
    return rc;
}

static int fetch(void *context, int rank, int param, void *shard, struct s4d_error *err)
{
    struct job *j = context;
    const struct s4d_param *q = &j->t->program.params[param];
    if (rank == j->t->world->rank)
        return own_shard(j, param, shard, err);
    int code =
        MPI_Recv(shard, (int)q->shard_elements, j->as == S4D_DTYPE_F64 ? MPI_DOUBLE : MPI_FLOAT,
                 rank, TAG, j->t->world->comm, MPI_STATUS_IGNORE);
    j->t->beats++;
    return code == MPI_SUCCESS ? 0
                               : s4d_fail(err, S4D_EXIT_DEVICE, "", "rank %d sends nothing", rank);
}

static int send_shards(struct job *j, struct s4d_error *err)
{
    const struct s4d_program *p = &j->t->program;
    for (int i = 0; i < p->n_params; i++) {
        const struct s4d_param *q = &p->params[i];
        if (!s4d_shard_is_saved(p, q, j->t->world->rank))
            continue;
        void *shard = s4d_malloc((size_t)(q->shard_elements * s4d_dtype_bytes[j->as]));
        int rc = own_shard(j, i, shard, err);
        if (!rc)
            MPI_Send(shard, (int)q->shard_elements, j->as == S4D_DTYPE_F64 ? MPI_DOUBLE : MPI_FLOAT,
                     0, TAG, j->t->world->comm);
        free(shard);
        if (rc)
            return -1;
    }
    return 0;
}

static double loss_scale(struct s4d_train *t)
{
    double scale = 1;
    struct s4d_error err;
    if (t->program.loss_scale >= 0 &&
        s4d_state_read(t->executor, &t->device, t->program.loss_scale, &scale, &err))
        scale = 1;
    return scale;
}

int s4d_train_save(struct s4d_train *t, const char *file, bool gradients, struct s4d_error *err)
{
    bool f64 = t->program.options.precision == S4D_F64;
    struct job j = {.t = t,
                    .gradients = gradients,
                    .as = f64 ? S4D_DTYPE_F64 : S4D_DTYPE_F32,
                    .scale = gradients ? loss_scale(t) : 1};
    if (t->world->rank != 0)
        return send_shards(&j, err);
    return s4d_checkpoint_save(&t->program, file, j.as, NULL, fetch, &j, err);
}
