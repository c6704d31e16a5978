/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a safetensors file; of what is taken, every element is read. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/memory.h"
#include "support/safetensors.h"

static void visit(const struct s4d_safetensors *st, const struct s4d_safetensor *t)
{
    struct s4d_error err;
    int64_t cols = t->dims ? t->shape[t->dims - 1] : 1, rows = cols ? t->elements / cols : 0;
    struct s4d_safetensors_block b = {
        .rows = rows, .cols = cols, .stride = rows, .transposed = t->dims > 1};
    b.stride = b.transposed ? rows : cols;
    double *out = s4d_malloc((size_t)(t->elements + 1) * sizeof *out);
    int rc = s4d_safetensors_read(st, t, &b, S4D_DTYPE_F64, out, &err);
    S4D_ASSERT((rc == 0) == (t->dtype <= S4D_DTYPE_BF16), "%s", err.text);
    rc = s4d_safetensors_bytes(st, t, 0, t->elements, out, &err);
    S4D_ASSERT(rc == 0 && s4d_safetensors_find(st, t->name) == t, "%s", t->name);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct s4d_safetensors *st;
    struct s4d_error err;
    char name[32];
    int fd = memfd_create("fuzz", 0);
    S4D_ASSERT(fd >= 0 && write(fd, data, n) == (ssize_t)n, "memfd");
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (s4d_safetensors_open(name, &st, &err)) {
        S4D_ASSERT(st == NULL && strncmp(err.where, name, strlen(name)) == 0, "%s", err.where);
    } else {
        int64_t bytes = 0;
        for (int i = 0; i < s4d_safetensors_count(st); i++) {
            bytes += s4d_safetensors_get(st, i)->bytes;
            visit(st, s4d_safetensors_get(st, i));
        }
        S4D_ASSERT(bytes <= (int64_t)n, "%lld bytes of %zu", (long long)bytes, n);
        s4d_safetensors_close(st);
    }
    close(fd);
    return 0;
}
