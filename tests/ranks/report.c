/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ranks/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

static int n_tests;
static bool failed;

static int rank_of(MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

void s4d_ranks_report(bool good, const char *name, const char *why)
{
    n_tests++;
    failed |= !good;
    if (rank_of(MPI_COMM_WORLD) == 0) {
        printf("%s %d - %s\n", good ? "ok" : "not ok", n_tests, name);
        if (!good)
            printf("# %s\n", why);
        fflush(stdout);
    }
}

int s4d_ranks_reported(void)
{
    return n_tests;
}

bool s4d_ranks_failed(void)
{
    return failed;
}

void s4d_ranks_seed(int seed)
{
    char text[16];
    snprintf(text, sizeof text, "%d", seed);
    setenv("S4D_DOUBLE_SEED", text, 1);
}

static void share_words(char why[S4D_RANKS_WORDS])
{
    MPI_Request request;
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *all = s4d_calloc((size_t)size, S4D_RANKS_WORDS);
    MPI_Iallgather(why, S4D_RANKS_WORDS, MPI_CHAR, all, S4D_RANKS_WORDS, MPI_CHAR, MPI_COMM_WORLD,
                   &request);
    s4d_ranks_wait(&request);
    for (int r = size - 1; r >= 0; r--)
        if (all[(size_t)r * S4D_RANKS_WORDS])
            memcpy(why, all + (size_t)r * S4D_RANKS_WORDS, S4D_RANKS_WORDS);
    free(all);
}

static bool same(const double *a, const double *b, int64_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void compare_bits(const struct s4d_case *c, const struct s4d_trained *a,
                         const struct s4d_trained *b, char why[S4D_RANKS_WORDS])
{
    for (int i = 0; i < b->n; i++)
        if (!same(a->params[i].gradient, b->params[i].gradient, b->params[i].n) ||
            !same(a->params[i].weight, b->params[i].weight, b->params[i].n))
            snprintf(why, S4D_RANKS_WORDS, "%s differs", b->params[i].name);
    if (!same(a->loss, b->loss, c->iterations) ||
        (c->options.clip_norm > 0 && !same(a->grad_norm, b->grad_norm, c->iterations)))
        snprintf(why, S4D_RANKS_WORDS, "losses or norms differ");
}

static void compare(const struct s4d_case *c, const struct s4d_trained *got,
                    const struct s4d_trained *reference, double tolerance,
                    char why[S4D_RANKS_WORDS])
{
    if (tolerance == 0) {
        compare_bits(c, got, reference, why);
        return;
    }
    struct s4d_difference d = s4d_compare(c, got, reference);
    if (!(d.gradient <= tolerance && d.weight <= tolerance && d.loss <= tolerance &&
          d.grad_norm <= tolerance))
        snprintf(why, S4D_RANKS_WORDS, "gradient %.3g (%s), weight %.3g (%s), loss %.3g, norm %.3g",
                 d.gradient, d.gradient_of, d.weight, d.weight_of, d.loss, d.grad_norm);
}

/* The world's first n ranks; MPI_COMM_NULL on others. Made once each. */
static MPI_Comm first_ranks(int n)
{
    enum { SIZES = 64 };
    static MPI_Comm made[SIZES + 1];
    static bool known[SIZES + 1];
    int rank = rank_of(MPI_COMM_WORLD);
    S4D_ASSERT(n <= SIZES, "a grid of %d ranks", n);
    if (!known[n])
        MPI_Comm_split(MPI_COMM_WORLD, rank < n ? 0 : MPI_UNDEFINED, rank, &made[n]);
    known[n] = true;
    return made[n];
}

void s4d_ranks_outcome(const struct s4d_case *c, const struct s4d_ranks_options *how,
                       const struct s4d_trained *reference, double tolerance,
                       struct s4d_trained *out, char why[S4D_RANKS_WORDS])
{
    MPI_Comm comm = first_ranks(s4d_grid_ranks(&c->grid));
    struct s4d_trained got = {0};
    struct s4d_error err = {0};
    char wrong[256] = "";
    int rc = 0, rank = rank_of(MPI_COMM_WORLD);
    if (comm != MPI_COMM_NULL)
        rc = s4d_ranks_train(c, comm, how, wrong, &got, &err);
    why[0] = '\0';
    if (rc)
        snprintf(why, S4D_RANKS_WORDS, "rank %d: %s: %s", rank, err.where, err.text);
    else if (wrong[0])
        snprintf(why, S4D_RANKS_WORDS, "rank %d: %s", rank, wrong);
    else if (rank == 0 && reference)
        compare(c, &got, reference, tolerance, why);
    share_words(why);
    if (out)
        *out = got;
    else
        s4d_trained_free(&got);
}
