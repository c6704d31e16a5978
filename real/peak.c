/* SPDX-License-Identifier: Apache-2.0 */
#include "real/peak.h"

#include <string.h>

/* TFLOP/s, dense, of tensor cores but for f32; f64 too is of tensor cores, which cuBLAS uses. A
 * name is the beginning of the device's; where `whole`, all of it: others that begin so are slower.
 */
static const struct {
    const char *name;
    bool whole;
    double half, tf32, f32, f64;
    const char *source;
} known[] = {
    {"NVIDIA A100", false, 312, 156, 19.5, 19.5,
     "stas00/ml-engineering 744d01e compute/accelerator: A100 dense bf16; tf32 half of it, f32 and "
     "f64 19.5 TFLOP/s: NVIDIA's A100 data sheet"},
    {"NVIDIA H100 80GB HBM3", true, 989, 494.5, 66.9, 66.9,
     "stas00/ml-engineering 744d01e compute/accelerator: H100 dense bf16; tf32, f32, f64: "
     "glennklockwood.com/garden/processors/h100, matrix and FMA rates of SXM5"},
    {"NVIDIA H100 PCIe", true, 756.5, 378, 51, 51,
     "archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html, H100 PCIe, without sparsity"},
    {"NVIDIA H200", true, 989, 494.5, 66.9, 66.9,
     "stas00/ml-engineering 744d01e compute/accelerator: H200 dense bf16; tf32, f32, f64 as H100 "
     "SXM5's: glennklockwood.com/garden/processors/h100"},
    {"NVIDIA GH200", false, 989, 494.5, 66.9, 66.9,
     "stas00/ml-engineering 744d01e compute/accelerator: GH200 dense bf16; tf32, f32, f64 as H100 "
     "SXM5's: glennklockwood.com/garden/processors/h100"},
};

struct s4d_peak s4d_advertised_peak(const char *device, enum s4d_type type, bool tf32)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].name);
        /* A part of a GPU (multi-instance) has "MIG" in its name. */
        if (strncmp(device, known[i].name, n) != 0 || (known[i].whole && device[n]) ||
            strstr(device, " MIG "))
            continue;
        double tera = type == S4D_F64   ? known[i].f64
                      : type != S4D_F32 ? known[i].half
                      : tf32            ? known[i].tf32
                                        : known[i].f32;
        return (struct s4d_peak){1e12 * tera, known[i].source};
    }
    return (struct s4d_peak){0, NULL};
}
