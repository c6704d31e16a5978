/* SPDX-License-Identifier: Apache-2.0 */
/* Measured kernels beside simulated ones. */
#ifndef S4D_CLI_ACCURACY_KERNELS_H
#define S4D_CLI_ACCURACY_KERNELS_H

#include "plots/accuracy.h"

/* FOLDER/gemm.csv: machine,m,n,k,TFLOPs,note,source; consecutive rows of a machine are a series. 0,
 * or -1 (exit 65). */
int s4d_accuracy_gemms(const char *folder, struct s4d_accuracy_kernels *list,
                       struct s4d_error *err);
/* FOLDER/attention.csv:
 * machine,library,pass,head_dim,causal,seq_length,TFLOPs,note,source. */
int s4d_accuracy_attention(const char *folder, struct s4d_accuracy_kernels *list,
                           struct s4d_error *err);

#endif
