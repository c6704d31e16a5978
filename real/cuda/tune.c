/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses how each of the program's products is multiplied: rank 0 times all variants on its GPU,
 * or reads what was timed before, and all ranks do as it says, so that replicas compute alike. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "real/cuda/internal.h"
#include "support/memory.h"

/* A sample lasts about this long; the time is the least of SAMPLES, as others only disturb.
 * Assumed: 2 ms are hundreds of times what events tell apart (0.5 us: CUDA runtime API). */
static const double sample_s = 2e-3;
enum {
    SAMPLES = 5,
    MOST_RUNS = 1000,
    CONTENTS = 0x3c /* bf16, f16, f32 and f64 of moderate size */
};

static struct s4d_gemm_signature signature_of(const struct s4d_cuda *c,
                                              const struct s4d_cuda_product *p)
{
    return (struct s4d_gemm_signature){.m = p->m,
                                       .n = p->n,
                                       .k = p->k,
                                       .lda = p->a.ld,
                                       .ldb = p->b.ld,
                                       .ldd = p->d.ld,
                                       .transpose_a = p->transpose_a,
                                       .transpose_b = p->transpose_b,
                                       .accumulate = p->beta != 0,
                                       .tf32 = c->options.tf32 && p->a.type == S4D_F32,
                                       .type = p->a.type,
                                       .d_type = p->d.type};
}

int s4d_cuda_variant(void *self, const struct s4d_cuda_product *p)
{
    const struct s4d_cuda *c = self;
    struct s4d_gemm_signature of = signature_of(c, p);
    const struct s4d_gemm_choice *choice = s4d_gemm_choice_of(&c->choices, &of);
    return choice ? choice->variant : 0;
}

/* Memory that a product touches. */
static int64_t matrix_bytes(const struct s4d_cuda_matrix *x, int64_t rows)
{
    return rows * x->ld * s4d_type_bytes[x->type];
}

/* A product's matrices and scratch, one after the other from `at` on (NULL: only how much). */
static int64_t place(struct s4d_cuda_product *p, unsigned char *at, void **scratch)
{
    int64_t bytes[3] = {matrix_bytes(&p->a, p->transpose_a ? p->k : p->m),
                        matrix_bytes(&p->b, p->transpose_b ? p->n : p->k),
                        matrix_bytes(&p->d, p->m)};
    void **data[3] = {&p->a.data, &p->b.data, &p->d.data};
    int64_t used = 0;
    for (int i = 0; i < 3; i++) {
        *data[i] = at ? at + used : NULL;
        used += (bytes[i] + 255) / 256 * 256;
    }
    if (scratch)
        *scratch = at + used;
    return used + s4d_cuda_turned_bytes(p, S4D_TURN_A | S4D_TURN_B);
}

/* Seconds of `runs` in a row. */
static int time_runs(struct s4d_cuda *c, const struct s4d_cuda_work *w,
                     const struct s4d_cuda_product *p, int variant, int runs,
                     const cudaEvent_t *event, double *t_s, struct s4d_error *err)
{
    cudaStream_t stream = c->streams[S4D_STREAM_COMPUTE].stream;
    float ms = 0;
    if (S4D_CUDA(err, cudaEventRecord, event[0], stream))
        return -1;
    for (int i = 0; i < runs; i++)
        if (s4d_cuda_multiply_turned(w, *p, variant, err))
            return -1;
    if (S4D_CUDA(err, cudaEventRecord, event[1], stream) ||
        S4D_CUDA(err, cudaStreamSynchronize, stream) ||
        S4D_CUDA(err, cudaEventElapsedTime, &ms, event[0], event[1]))
        return -1;
    *t_s = 1e-3 * (double)ms;
    return 0;
}

static int time_variant(struct s4d_cuda *c, const struct s4d_cuda_work *w,
                        const struct s4d_cuda_product *p, int variant, const cudaEvent_t *event,
                        double *least_s, struct s4d_error *err)
{
    double t_s;
    if (time_runs(c, w, p, variant, 1, event, &t_s, err) || /* the library's first call */
        time_runs(c, w, p, variant, 2, event, &t_s, err))
        return -1;
    double runs = ceil(sample_s / (t_s > 0 ? t_s / 2 : sample_s));
    int n = runs < 1 ? 1 : runs < MOST_RUNS ? (int)runs : MOST_RUNS;
    *least_s = INFINITY;
    for (int i = 0; i < SAMPLES; i++) {
        if (time_runs(c, w, p, variant, n, event, &t_s, err))
            return -1;
        *least_s = fmin(*least_s, t_s / n);
    }
    /* What a clock cannot see is no reason to choose. */
    *least_s = *least_s > 0 ? *least_s : 1e-9;
    return 0;
}

static int time_variants(struct s4d_cuda *c, struct s4d_cuda_product p, unsigned char *memory,
                         const cudaEvent_t *event, struct s4d_gemm_choice *choice,
                         struct s4d_error *err)
{
    struct s4d_cuda_work w = c->work;
    place(&p, memory, &w.scratch);
    choice->of = signature_of(c, &p);
    choice->variant = 0;
    for (int v = 0; v < S4D_GEMM_VARIANTS; v++) {
        if (time_variant(c, &w, &p, v, event, &choice->t_s[v], err)) {
            if (err)
                s4d_cuda_say(err, "; while the product %s, %lld x %lld x %lld, was timed %s",
                             p.name, (long long)p.m, (long long)p.n, (long long)p.k,
                             s4d_gemm_variant_names[v]);
            s4d_cuda_say_gpu(c, err);
            return -1;
        }
        if (choice->t_s[v] < choice->t_s[choice->variant])
            choice->variant = v;
    }
    return 0;
}

/* The program's products, each signature once. */
static struct s4d_cuda_product *products_of(const struct s4d_cuda *c, int *n)
{
    struct s4d_cuda_product *v = NULL;
    struct s4d_gemm_choices met = {0};
    int cap = 0;
    *n = 0;
    for (int i = 0; i < c->program->n_ops; i++) {
        struct s4d_gemm_choice one = {.variant = 0};
        if (c->program->ops[i].kind != S4D_OP_GEMM)
            continue;
        struct s4d_call call = s4d_cuda_outline(c->program, &c->program->ops[i]);
        struct s4d_cuda_product p = s4d_cuda_product_of(&call);
        one.of = signature_of(c, &p);
        if (s4d_gemm_choice_of(&met, &one.of))
            continue;
        s4d_push(met.v, met.n, met.cap, one);
        s4d_push(v, *n, cap, p);
    }
    s4d_gemm_choices_free(&met);
    return v;
}

/* Those that are not in `known` are timed and added to it. */
static int measure(struct s4d_cuda *c, struct s4d_cuda_product *v, int n,
                   struct s4d_gemm_choices *known, struct s4d_error *err)
{
    cudaEvent_t event[2] = {NULL, NULL};
    void *memory = NULL;
    int64_t most = 1;
    for (int i = 0; i < n; i++) {
        int64_t bytes = place(&v[i], NULL, NULL);
        most = bytes > most ? bytes : most;
    }
    cudaStream_t stream = c->streams[S4D_STREAM_COMPUTE].stream;
    int rc = s4d_cuda_malloc("matrices of --gemm-tuning", (size_t)most, &memory, err) ||
             S4D_CUDA(err, cudaMemsetAsync, memory, CONTENTS, (size_t)most, stream) ||
             S4D_CUDA(err, cudaEventCreateWithFlags, &event[0], cudaEventDefault) ||
             S4D_CUDA(err, cudaEventCreateWithFlags, &event[1], cudaEventDefault);
    for (int i = 0; i < n && !rc; i++) {
        struct s4d_gemm_signature of = signature_of(c, &v[i]);
        struct s4d_gemm_choice choice;
        if (s4d_gemm_choice_of(known, &of))
            continue;
        rc = time_variants(c, v[i], memory, event, &choice, err);
        if (!rc)
            s4d_push(known->v, known->n, known->cap, choice);
    }
    for (int i = 0; i < 2; i++)
        if (event[i])
            S4D_CUDA(NULL, cudaEventDestroy, event[i]);
    if (memory)
        S4D_CUDA(NULL, cudaFree, memory);
    return rc ? -1 : 0;
}

static bool knows_all(const struct s4d_cuda *c, const struct s4d_cuda_product *v, int n,
                      const struct s4d_gemm_choices *known)
{
    for (int i = 0; i < n; i++) {
        struct s4d_gemm_signature of = signature_of(c, &v[i]);
        if (!s4d_gemm_choice_of(known, &of))
            return false;
    }
    return true;
}

/* Rank 0 alone. Of `known` the program's are kept in c->choices. */
static int choose(struct s4d_cuda *c, struct s4d_cuda_product *v, int n, struct s4d_error *err)
{
    struct s4d_gemm_choices known = {0};
    char *own_file = s4d_gemm_cache_file(), library[32], device[S4D_CUDA_NAME] = "";
    const char *file = c->options.gemm_cache ? c->options.gemm_cache : own_file;
    int version = 0;
    int rc =
        s4d_cuda_device_name(device, err) || S4D_CUBLAS(err, cublasGetVersion, c->cublas, &version);
    snprintf(library, sizeof library, "cuBLAS %d", version);
    rc = rc || s4d_gemm_choices_read(&known, file, device, library, err);
    int before = known.n;
    if (!rc && c->options.gemm_tuning == S4D_TUNING_FULL)
        rc = (!knows_all(c, v, n, &known) && s4d_gemm_choices_writable(file, err)) ||
             measure(c, v, n, &known, err) ||
             (known.n > before && s4d_gemm_choices_write(&known, file, device, library, err));
    for (int i = 0; i < n && !rc; i++) {
        struct s4d_gemm_signature of = signature_of(c, &v[i]);
        const struct s4d_gemm_choice *choice = s4d_gemm_choice_of(&known, &of);
        if (choice)
            s4d_push(c->choices.v, c->choices.n, c->choices.cap, *choice);
    }
    s4d_gemm_choices_free(&known);
    free(own_file);
    return rc ? -1 : 0;
}

int s4d_cuda_tune(struct s4d_cuda *c, struct s4d_error *err)
{
    int n, rc = 0;
    if (c->options.gemm_tuning == S4D_TUNING_OFF)
        return 0;
    struct s4d_cuda_product *v = products_of(c, &n);
    if (c->rank == 0)
        rc = choose(c, v, n, err);
    free(v);
    if (s4d_cuda_agree(c, rc, err))
        return -1;
    MPI_Bcast(&c->choices.n, 1, MPI_INT, 0, c->options.comm);
    if (c->rank != 0)
        c->choices.v = s4d_calloc((size_t)c->choices.n + 1, sizeof *c->choices.v);
    MPI_Bcast(c->choices.v, c->choices.n * (int)sizeof *c->choices.v, MPI_BYTE, 0, c->options.comm);
    return 0;
}
