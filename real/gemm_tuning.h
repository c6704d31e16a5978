/* SPDX-License-Identifier: Apache-2.0 */
/* Which way a library multiplies a pair of matrices fastest: as they lie, or with one or both of
 * them turned (transposed into scratch) first (arXiv 2502.08145 sec. V: of a layer's three products
 * one is in a mode that its library is slow at). Choices are kept in a file, per device and
 * library, a line each. */
#ifndef S4D_REAL_GEMM_TUNING_H
#define S4D_REAL_GEMM_TUNING_H

#include <stdbool.h>

#include "schedule/op.h"
#include "support/error.h"

enum s4d_gemm_tuning {
    S4D_TUNING_OFF,    /* every product as its matrices lie */
    S4D_TUNING_CACHED, /* what the file says, the others as they lie */
    S4D_TUNING_FULL,   /* what the file does not say is measured first, and written */
    S4D_TUNINGS
};
extern const char *const s4d_gemm_tuning_names[S4D_TUNINGS + 1]; /* ends with NULL */

/* Bits of a variant. */
enum { S4D_TURN_A = 1, S4D_TURN_B = 2, S4D_GEMM_VARIANTS = 4 };
extern const char *const s4d_gemm_variant_names[S4D_GEMM_VARIANTS];

/* All that the time of a product depends on; as c.gemm in schedule/op.h. */
struct s4d_gemm_signature {
    int64_t m, n, k, lda, ldb, ldd;
    int transpose_a, transpose_b, accumulate, tf32; /* 0 or 1 */
    enum s4d_type type, d_type;                     /* of a and b; of d */
};

struct s4d_gemm_choice {
    struct s4d_gemm_signature of;
    int variant;                   /* the fastest */
    double t_s[S4D_GEMM_VARIANTS]; /* of each, turning included */
};
struct s4d_gemm_choices {
    struct s4d_gemm_choice *v;
    int n, cap;
};

const struct s4d_gemm_choice *s4d_gemm_choice_of(const struct s4d_gemm_choices *choices,
                                                 const struct s4d_gemm_signature *of); /* or NULL */
void s4d_gemm_choices_free(struct s4d_gemm_choices *choices);

/* $XDG_CACHE_HOME/scale4d/gemm-tuning.tsv, or below ~/.cache; the caller's. */
char *s4d_gemm_cache_file(void);
/* Appends the file's choices for this device and library; a file that is not there has none. 0, or
 * -1 (exit 65) with the line that is wrong. */
int s4d_gemm_choices_read(struct s4d_gemm_choices *choices, const char *file, const char *device,
                          const char *library, struct s4d_error *err);
/* Before it takes time to find out what is to be written. 0, or -1 (exit 74). */
int s4d_gemm_choices_writable(const char *file, struct s4d_error *err);
/* Writes them in place of those that the file has for this device and library; the others stay.
 * Beside it and renamed. 0, or -1 (exit 74). */
int s4d_gemm_choices_write(const struct s4d_gemm_choices *choices, const char *file,
                           const char *device, const char *library, struct s4d_error *err);

#endif
