/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/initial.h"

#include "support/random.h"

double s4d_initial_weight(const struct s4d_param *param, uint64_t seed, double perturb,
                          int64_t index)
{
    uint64_t key = seed * 0x9e3779b97f4a7c15u ^ s4d_hash_text(param->name);
    double plain = param->init == S4D_INIT_ONE ? 1 : 0;
    if (param->init == S4D_INIT_NORMAL)
        return param->init_std * s4d_normal_at(key, (uint64_t)index);
    return perturb == 0 ? plain : plain + perturb * s4d_normal_at(key, (uint64_t)index);
}
