/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels with arithmetic in fp32: programs of f32, bf16 and f16. */
#define REAL      float
#define REAL_TYPE S4D_F32
#define GEMM      cblas_sgemm
#define EXP       s4d_expf
#define LOG       logf
#define SQRT      sqrtf
#define TABLE     s4d_host_kernels_f32
#include "real/host/kernels.inc"
