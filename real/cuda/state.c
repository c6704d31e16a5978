/* SPDX-License-Identifier: Apache-2.0 */
/* What this rank's GPU is and how it fares. */
#include "real/cuda/internal.h"
#include "real/cuda/nvml.h"

json_t *s4d_cuda_state(const struct s4d_device *device)
{
    const struct s4d_cuda *c = device->self;
    json_t *state = json_pack("{s:s, s:s, s:I}", "name", c->name, "pci", c->pci, "memory_bytes",
                              (json_int_t)c->device_bytes);
    s4d_nvml_add(state, c->pci);
    return state;
}
