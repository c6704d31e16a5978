/* SPDX-License-Identifier: Apache-2.0 */
/* What this rank's GPU is and how it fares. */
#include <stdio.h>

#include "real/cuda/internal.h"

json_t *s4d_cuda_state(const struct s4d_device *device)
{
    char name[S4D_CUDA_NAME], pci[S4D_CUDA_PCI];
    size_t free_bytes = 0, total = 0;
    int number = 0;
    json_t *state = json_object();
    (void)device;
    if (!s4d_cuda_device_name(name, NULL))
        json_object_set_new(state, "name", json_string(name));
    if (!S4D_CUDA(NULL, cudaGetDevice, &number) &&
        !S4D_CUDA(NULL, cudaDeviceGetPCIBusId, pci, S4D_CUDA_PCI, number))
        json_object_set_new(state, "pci", json_string(pci));
    if (!S4D_CUDA(NULL, cudaMemGetInfo, &free_bytes, &total))
        json_object_set_new(state, "memory_bytes", json_integer((json_int_t)total));
    return state;
}
