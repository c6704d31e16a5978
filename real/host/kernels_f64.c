/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels with arithmetic in fp64: programs of f64, the reference for numerics. */
#define REAL      double
#define REAL_TYPE S4D_F64
#define GEMM      cblas_dgemm
#define EXP       exp
#define LOG       log
#define SQRT      sqrt
#define TABLE     s4d_host_kernels_f64
#include "real/host/kernels.inc"
