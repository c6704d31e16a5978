/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/cpu_work.h"

#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "tests/cuda/cases.h"
#include "tests/cuda/cpu_launch.h"
#include "tests/lib/numbers.h"

enum { CANARY = 64 };

struct cpu {
    int variant;
    enum s4d_cpu_shapes shapes;
    bool f64;
    void *table;
};

static int launch(void *self, const struct s4d_cuda_kernel *k, const struct s4d_cuda_args *a,
                  struct s4d_error *err)
{
    struct cpu *cpu = self;
    struct s4d_cuda_shape s = s4d_cuda_shape_of(k, a);
    (void)err;
    if (cpu->shapes == S4D_CPU_ONE_THREAD)
        s.threads = 1;
    if (cpu->shapes == S4D_CPU_ODD) {
        s.threads = (unsigned)s4d_draw(2, 77);
        s.grid_x = (unsigned)s4d_draw(1, 5);
        s.grid_y = s.grid_y > 1 ? (unsigned)s4d_draw(1, 5) : 1;
    }
    s4d_cpu_launch(k->function[cpu->f64], a, s.grid_x, s.grid_y, s.threads,
                   s4d_cuda_shared_bytes(k, s.threads));
    return 0;
}

static double at(const struct s4d_cuda_matrix *x, int64_t batch, int64_t i, int64_t j)
{
    int64_t where = batch * x->apart + i * x->ld + j;
    return s4d_number_load(x->type, (unsigned char *)x->data + where * s4d_type_bytes[x->type]);
}

static int multiply(void *self, const struct s4d_cuda_product *p, struct s4d_error *err)
{
    (void)self;
    if (p->batch > S4D_CUDA_MOST_BATCH)
        return s4d_fail(err, S4D_EXIT_BUG, p->name, "a batch of %lld", (long long)p->batch);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < p->k; l++)
                    sum += (p->transpose_a ? at(&p->a, b, l, i) : at(&p->a, b, i, l)) *
                           (p->transpose_b ? at(&p->b, b, j, l) : at(&p->b, b, l, j));
                sum *= p->alpha;
                if (p->beta != 0)
                    sum += p->beta * at(&p->d, b, i, j);
                s4d_number_store(p->d.type,
                                 (unsigned char *)p->d.data +
                                     (b * p->d.apart + i * p->d.ld + j) * s4d_type_bytes[p->d.type],
                                 sum);
            }
    return 0;
}

static const void *rotary_table(void *self, const union s4d_constants *c)
{
    struct cpu *cpu = self;
    int64_t n = c->rotary.seq * c->rotary.head_dim;
    double *angles = s4d_malloc((size_t)n * sizeof *angles);
    s4d_cuda_rotary_angles(c, angles);
    free(cpu->table);
    cpu->table = s4d_malloc((size_t)n * sizeof *angles);
    for (int64_t i = 0; i < n; i++)
        s4d_number_store(cpu->f64 ? S4D_F64 : S4D_F32,
                         (unsigned char *)cpu->table + i * (cpu->f64 ? 8 : 4), angles[i]);
    free(angles);
    return cpu->table;
}

static int variant(void *self, const struct s4d_cuda_product *p)
{
    (void)p;
    return ((const struct cpu *)self)->variant;
}

bool s4d_cpu_run(const struct s4d_call *call, enum s4d_cpu_shapes shapes, bool f64)
{
    struct cpu cpu = {(int)s4d_draw(0, 3), shapes, f64, NULL};
    struct s4d_cuda_work w = {.self = &cpu,
                              .launch = launch,
                              .multiply = multiply,
                              .rotary_table = rotary_table,
                              .variant = variant,
                              .f64 = f64};
    struct s4d_error err;
    int64_t bytes = s4d_cuda_scratch_bytes(&w, call);
    unsigned char *scratch = aligned_alloc(256, (size_t)(bytes + CANARY + 255) / 256 * 256);
    memset(scratch, 0xff, (size_t)(bytes + CANARY));
    w.scratch = scratch;
    bool good = s4d_cuda_work_run(&w, call, &err) == 0;
    for (int i = 0; i < CANARY; i++)
        good = good && scratch[bytes + i] == 0xff;
    free(scratch);
    free(cpu.table);
    return good;
}
