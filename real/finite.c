/* SPDX-License-Identifier: Apache-2.0 */
#include "real/finite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/half.h"
#include "support/memory.h"

static double number(enum s4d_type type, const void *v, int64_t i)
{
    switch (type) {
    case S4D_F64:
        return ((const double *)v)[i];
    case S4D_F32:
        return (double)((const float *)v)[i];
    case S4D_BF16:
        return (double)s4d_bf16_value(((const uint16_t *)v)[i]);
    case S4D_F16:
        return s4d_f16_value(((const uint16_t *)v)[i]);
    default:
        return 0;
    }
}

static int check(const struct s4d_call *call, int operand, const void *v, int iteration,
                 struct s4d_error *err)
{
    const struct s4d_buffer *b = &call->operand[operand];
    const struct s4d_op *op = call->op;
    char layer[32] = "";
    for (int64_t i = 0; i < b->rows * b->cols; i++) {
        double value = number(b->type, v, i);
        if (isfinite(value) || (op->kind == S4D_OP_LOSS_MAX && value < 0) ||
            (op->kind == S4D_OP_ALL_REDUCE && op->c.collective.reduction == S4D_MAX && value < 0))
            continue;
        if (op->label.layer >= 0)
            snprintf(layer, sizeof layer, " of layer %d", op->label.layer);
        return s4d_fail(err, S4D_EXIT_CHECK, "--check-finite",
                        "iteration %d: op %d, %s %s%s, wrote %g at element %lld of %s", iteration,
                        call->index, s4d_op_kinds[op->kind].name, op->label.name, layer, value,
                        (long long)i, s4d_op_kinds[op->kind].operand[operand].name);
    }
    return 0;
}

int s4d_check_finite(const struct s4d_device *device, const struct s4d_call *call, int iteration,
                     struct s4d_error *err)
{
    int rc = 0;
    for (int k = 0; k < s4d_op_kinds[call->op->kind].n_operands && !rc; k++) {
        const struct s4d_buffer *b = &call->operand[k];
        bool is_float = b->type <= S4D_F16;
        if (!b->data || !is_float || !(call->op->operand[k].access & S4D_WRITE))
            continue;
        void *v = s4d_malloc((size_t)(b->rows * b->cols * s4d_type_bytes[b->type]));
        rc = device->download(device->self, b, v, err);
        if (!rc)
            rc = check(call, k, v, iteration, err);
        free(v);
    }
    return rc;
}
