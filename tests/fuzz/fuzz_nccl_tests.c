/* SPDX-License-Identifier: Apache-2.0 */
/* What nccl-tests measured: any bytes are rows with sizes and times or a clear message. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plots/nccl_tests.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct s4d_nccl_tests t;
    struct s4d_error err = {0};
    char *text = malloc(size + 1);
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    int rc = s4d_nccl_tests_parse(&t, text, size, "fuzz", &err);
    if (rc == 0) {
        if (t.n == 0 || t.ranks < 0)
            abort();
        for (int i = 0; i < t.n; i++)
            if (!(t.row[i].bytes >= 1) || !(t.row[i].time_s > 0) || !isfinite(t.row[i].time_s))
                abort();
        s4d_nccl_tests_check(&t, "fuzz", "all_reduce", 8, 1.75, &err);
    } else if (err.exit != S4D_EXIT_DATA || err.text[0] == '\0') {
        abort();
    }
    s4d_nccl_tests_free(&t);
    free(text);
    return 0;
}
