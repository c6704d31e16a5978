/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/plan.h"

static int64_t reserved(int64_t bytes)
{
    return (bytes + S4D_PLAN_ALIGN - 1) / S4D_PLAN_ALIGN * S4D_PLAN_ALIGN;
}

struct s4d_plan_summary s4d_plan_summarise(const struct s4d_program *program)
{
    struct s4d_plan_summary sum = {.total = program->arena_bytes[S4D_DEVICE]};
    int64_t persistent = 0;
    for (int i = 0; i < program->n_storages; i++) {
        const struct s4d_storage *s = &program->storages[i];
        if (s->place == S4D_DEVICE && s->persistent) {
            sum.by_role[s->role] += reserved(s->bytes);
            persistent += reserved(s->bytes);
        }
    }
    sum.shared = sum.total - persistent;
    return sum;
}
