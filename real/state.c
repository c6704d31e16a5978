/* SPDX-License-Identifier: Apache-2.0 */
#include "real/state.h"

#include <stdlib.h>

#include "real/shard.h"
#include "support/half.h"
#include "support/memory.h"

static void store(enum s4d_type type, void *to, int64_t i, double value)
{
    switch (type) {
    case S4D_F64:
        ((double *)to)[i] = value;
        break;
    case S4D_F32:
        ((float *)to)[i] = (float)value;
        break;
    case S4D_BF16:
        ((uint16_t *)to)[i] = s4d_bf16_of((float)value);
        break;
    case S4D_F16:
        ((uint16_t *)to)[i] = s4d_f16_of((float)value);
        break;
    default:
        s4d_bug(__FILE__, __LINE__, "type", "%s is no type of weights", s4d_type_names[type]);
    }
}

static double load(enum s4d_type type, const void *from, int64_t i)
{
    switch (type) {
    case S4D_F64:
        return ((const double *)from)[i];
    case S4D_F32:
        return (double)((const float *)from)[i];
    case S4D_BF16:
        return (double)s4d_bf16_value(((const uint16_t *)from)[i]);
    case S4D_F16:
        return s4d_f16_value(((const uint16_t *)from)[i]);
    default:
        s4d_bug(__FILE__, __LINE__, "type", "%s is no type of weights", s4d_type_names[type]);
    }
}

/* This rank's view of a tensor, rounded to its type. */
static int write_values(const struct s4d_executor *x, struct s4d_device *device, int tensor,
                        const double *values, struct s4d_error *err)
{
    struct s4d_buffer b = s4d_executor_buffer(x, tensor);
    int64_t n = b.rows * b.cols;
    void *bytes = s4d_malloc((size_t)(n * s4d_type_bytes[b.type]));
    for (int64_t i = 0; i < n; i++)
        store(b.type, bytes, i, values[i]);
    int rc = device->upload(device->self, &b, bytes, err);
    free(bytes);
    return rc;
}

int s4d_state_read(const struct s4d_executor *x, struct s4d_device *device, int tensor,
                   double *values, struct s4d_error *err)
{
    struct s4d_buffer b = s4d_executor_buffer(x, tensor);
    int64_t n = b.rows * b.cols;
    void *bytes = s4d_malloc((size_t)(n * s4d_type_bytes[b.type]));
    int rc = device->download(device->self, &b, bytes, err);
    for (int64_t i = 0; i < n && !rc; i++)
        values[i] = load(b.type, bytes, i);
    free(bytes);
    return rc;
}

static int write_scalar(const struct s4d_executor *x, struct s4d_device *device, int tensor,
                        double value, struct s4d_error *err)
{
    return tensor < 0 ? 0 : write_values(x, device, tensor, &value, err);
}

int s4d_state_write_weights(const struct s4d_executor *x, struct s4d_device *device,
                            const struct s4d_param *param, const double *shard,
                            struct s4d_error *err)
{
    if (write_values(x, device, param->master, shard, err))
        return -1;
    return param->working == param->master ? 0
                                           : write_values(x, device, param->working, shard, err);
}

int s4d_state_initialise(const struct s4d_executor *x, struct s4d_device *device,
                         const struct s4d_program *p, int rank, uint64_t seed,
                         struct s4d_error *err)
{
    int coordinate[S4D_AXES], rc = 0;
    s4d_grid_coordinates(&p->grid, rank, coordinate);
    for (int q = 0; q < p->n_params && !rc; q++) {
        double *w = s4d_malloc((size_t)p->params[q].shard_elements * sizeof *w);
        s4d_shard_initial(p, &p->params[q], coordinate, seed, S4D_DTYPE_F64, w);
        rc = s4d_state_write_weights(x, device, &p->params[q], w, err);
        free(w);
    }
    if (!rc)
        rc = write_scalar(x, device, p->lr, p->options.learning_rate, err);
    if (!rc)
        rc = write_scalar(x, device, p->loss_scale, S4D_LOSS_SCALE_START, err);
    return rc;
}
