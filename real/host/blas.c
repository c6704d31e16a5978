/* SPDX-License-Identifier: Apache-2.0 */
/* The BLAS library: its name and threads, where it is OpenBLAS (whose functions the link may lack).
 */
#include <stddef.h>

#include "real/host/host.h"

extern void openblas_set_num_threads(int threads) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));
extern char *openblas_get_config(void) __attribute__((weak));

const char *s4d_host_blas(void)
{
    return openblas_get_config != NULL ? openblas_get_config() : "CBLAS";
}

int s4d_host_threads(int threads, struct s4d_error *err)
{
    if (openblas_set_num_threads != NULL)
        openblas_set_num_threads(threads);
    int got = openblas_get_num_threads != NULL ? openblas_get_num_threads() : 1;
    if (got == threads)
        return 0;
    s4d_fail(err, S4D_EXIT_DEVICE, "--threads", "this BLAS computes with %d threads, not %d (%s)",
             got, threads, s4d_host_blas());
    return s4d_hint(err, "Debian's libopenblas-serial has one thread, libopenblas-pthread many");
}
