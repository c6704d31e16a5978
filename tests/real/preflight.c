/* SPDX-License-Identifier: Apache-2.0 */
/* The health check finds the one device that is slow, and the one that computes wrong values, among
 * four: on a device whose rank 2 multiplies every product many times over, or whose rank 1 gets
 * its products and sums wrong. On ranks; speaks TAP from rank 0.
 *
 *   mpirun -n 4 build/tests/real_preflight [host|cuda] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/mpi/backend.h"
#include "real/mpi/peers.h"
#include "real/preflight.h"

enum { RANKS = 4, SLOW = 2, WRONG = 1, TIMES = 24 };

static int rank, tests, failures;
static struct s4d_device inner;

static void check(bool good, const char *what)
{
    int own = good, all;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    failures += !all;
    if (rank == 0)
        printf("%s %d - %s\n", all ? "ok" : "not ok", ++tests, what);
    fflush(stdout);
}

static int slow_gemm(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err)
{
    int rc = 0;
    for (int i = 0; i < (rank == SLOW ? TIMES : 1) && !rc; i++)
        rc = inner.gemm(self, call, iteration, err);
    return rc;
}

/* Rank 1's result goes where nobody looks: into memory beyond, which the check of copies needs. */
static int wrong_post(void *self, const struct s4d_call *call, int n, int iteration,
                      struct s4d_error *err)
{
    static struct s4d_call kept; /* until it has completed; always the same of one size */
    int64_t bytes = 4 * call->operand[1].cols;
    kept = *call;
    if (rank == WRONG && bytes <= 32 << 20)
        kept.operand[1].data = (char *)call->operand[1].data + bytes;
    return inner.post(self, &kept, n, iteration, err);
}

/* Rank 1 multiplies the other way round. */
static int wrong_gemm(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err)
{
    static struct s4d_call kept;
    kept = *call;
    if (rank == WRONG) {
        kept.operand[0] = call->operand[1];
        kept.operand[1] = call->operand[0];
    }
    return inner.gemm(self, &kept, iteration, err);
}

enum fault { NONE, SLOW_GEMM, WRONG_VALUES };

/* The rates of all ranks on a backend with that fault. */
static int measure(struct s4d_preflight *p, const struct s4d_world *w, int backend, int node,
                   const struct s4d_preflight_options *options, enum fault fault)
{
    struct s4d_backend_options open = {.comm = w->comm, .threads = 1, .progress = 1};
    struct s4d_peers peers = s4d_mpi_peers(w, 1);
    struct s4d_device d;
    struct s4d_error err;
    s4d_preflight_init(p, w->size, node, S4D_F32, options);
    if (s4d_backend_of(backend)->open(&d, &p->program, &open, &err)) {
        s4d_error_print(&err);
        return -1;
    }
    inner = d;
    d.gemm = fault == SLOW_GEMM ? slow_gemm : fault == WRONG_VALUES ? wrong_gemm : d.gemm;
    d.post = fault == WRONG_VALUES ? wrong_post : d.post;
    int rc = s4d_preflight_measure(p, &d, &peers, &err);
    if (rc)
        s4d_error_print(&err);
    d.close(d.self);
    return rc;
}

static void say(const struct s4d_preflight_finding *f)
{
    if (rank == 0)
        printf("# %s of rank %d: %.3g, of %.3g, %.3g; wrong %.0f\n",
               s4d_preflight_kinds[f->kind].name, f->rank, f->rate, f->median, f->expected,
               f->wrong);
}

/* Products of rank 2 last 24 times as long: 4 % of the median, where it multiplies alone; nobody
 * else is below 12 % of it, whatever else this machine does. */
static void test_slow(const struct s4d_world *w, int backend)
{
    const struct s4d_preflight_options options = {.attempts = backend ? 1 : 2, .slower = 0.88};
    struct s4d_preflight_finding *f;
    struct s4d_preflight p;
    int rc = measure(&p, w, backend, 2, &options, SLOW_GEMM);
    int n = rc ? 0 : s4d_preflight_judge(&p, &f);
    bool found[S4D_PREFLIGHT_KINDS] = {false}, others = false;
    for (int i = 0; i < n; i++) {
        say(&f[i]);
        bool product = f[i].kind == S4D_PREFLIGHT_ALONE || f[i].kind == S4D_PREFLIGHT_GEMM;
        if (product && f[i].rank == SLOW && f[i].median > 0 && f[i].expected == 0)
            found[f[i].kind] = true;
        else
            others = true;
    }
    check(!rc, "products are timed on a device with one slow rank");
    /* Ranks that compute at once may share processors here, and wait for each other's. */
    check(found[S4D_PREFLIGHT_ALONE], "the slow rank is named");
    check(!others, "and nothing else is");
    bool made = true;
    for (int k = 0; k < S4D_PREFLIGHT_KINDS; k++)
        made = made && p.check[k].size > 0 && p.check[k].median > 0 && p.check[k].expected == 0;
    check(made, "two ranks a node: every check is made, sums over node, rail and world too");
    check(p.check[S4D_PREFLIGHT_NODE].rate[0] == p.check[S4D_PREFLIGHT_NODE].rate[1] &&
              p.check[S4D_PREFLIGHT_RAIL].rate[0] == p.check[S4D_PREFLIGHT_RAIL].rate[2],
          "a group is as fast as its slowest member");
    if (n)
        free(f);
    s4d_preflight_free(&p);
}

static void test_wrong(const struct s4d_world *w, int backend)
{
    const struct s4d_preflight_options options = {.attempts = 1, .slower = 1};
    struct s4d_preflight_finding *f;
    struct s4d_preflight p;
    int rc = measure(&p, w, backend, 0, &options, WRONG_VALUES);
    int n = rc ? 0 : s4d_preflight_judge(&p, &f);
    bool good = n == 3 && f[0].kind == S4D_PREFLIGHT_ALONE && f[1].kind == S4D_PREFLIGHT_GEMM &&
                f[2].kind == S4D_PREFLIGHT_WORLD;
    for (int i = 0; i < n; i++) {
        say(&f[i]);
        good = good && f[i].rank == WRONG && f[i].wrong > 0;
    }
    check(!rc && good, "a rank whose products and sums are wrong is named, and no other");
    check(p.check[S4D_PREFLIGHT_NODE].size == 0 && p.check[S4D_PREFLIGHT_RAIL].size == 0,
          "nodes of unlike sizes: only the world sums");
    if (n)
        free(f);
    s4d_preflight_free(&p);
}

/* A file whose memory is 1e30 bytes/s and that knows nothing else. */
static double unreachable(void *self, enum s4d_preflight_kind kind, int64_t size)
{
    (void)self;
    return kind == S4D_PREFLIGHT_MEMORY && size > 0 ? 1e30 : 0;
}

static void test_expected(const struct s4d_world *w, int backend)
{
    struct s4d_preflight_options options = {.attempts = 1, .slower = 1, .expected = unreachable};
    struct s4d_preflight_finding *f;
    struct s4d_preflight p;
    options.tolerance[S4D_PREFLIGHT_MEMORY] = 0.1;
    int rc = measure(&p, w, backend, w->size, &options, NONE);
    int n = rc ? 0 : s4d_preflight_judge(&p, &f);
    bool good = n == w->size;
    for (int i = 0; i < n; i++) {
        say(&f[i]);
        good = good && f[i].kind == S4D_PREFLIGHT_MEMORY && f[i].rank == i && f[i].median == 0 &&
               f[i].expected == 1e30 && f[i].wrong == 0;
    }
    check(!rc && good, "every rank is slow by a file that nobody reaches, and only there");
    if (n)
        free(f);
    s4d_preflight_free(&p);
}

int main(int argc, char **argv)
{
    struct s4d_world w;
    struct s4d_error err;
    int backend = argc > 1 && strcmp(argv[1], "cuda") == 0;
    if (s4d_world_open(&w, &argc, &argv, &err))
        return s4d_error_print(&err);
    rank = w.rank;
    if (w.size != RANKS) {
        fprintf(stderr, "four ranks are needed\n");
        return 64;
    }
    test_slow(&w, backend);
    test_wrong(&w, backend);
    test_expected(&w, backend);
    if (rank == 0)
        printf("1..%d\n", tests);
    s4d_world_close(&w);
    return failures > 0;
}
