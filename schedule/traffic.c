/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/traffic.h"

struct s4d_traffic s4d_traffic_count(const struct s4d_program *program)
{
    struct s4d_traffic t = {0};
    for (int i = 0; i < program->n_ops; i++) {
        const struct s4d_op *x = &program->ops[i];
        if (!s4d_communicates(x->kind))
            continue;
        t.bytes[x->kind - S4D_OP_ALL_REDUCE][x->stream] += s4d_collective_bytes(&x->c, x->kind);
        t.calls[x->kind - S4D_OP_ALL_REDUCE][x->stream]++;
    }
    return t;
}
