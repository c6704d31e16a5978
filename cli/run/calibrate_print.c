/* SPDX-License-Identifier: Apache-2.0 */
/* What calibrate knows of the machine without measuring, and its tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/run/bench.h"
#include "cli/run/calibrate.h"
#include "support/memory.h"
#include "support/record.h"

/* The first line that MPI says of itself, and BLAS: "Open MPI v4.1.4, ...; OpenBLAS 0.3.21". */
static char *libraries(const struct s4d_backend *backend)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;
    MPI_Get_library_version(mpi, &n);
    mpi[strcspn(mpi, ",\n")] = '\0';
    for (char *c = mpi; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    return s4d_asprintf("%s; %s", mpi, backend->about());
}

static char *command_line(const json_t *provenance)
{
    char *text = s4d_strdup("");
    size_t i;
    json_t *word;
    json_array_foreach(json_object_get(provenance, "argv"), i, word)
    {
        char *longer = s4d_asprintf("%s%s%s", text, i ? " " : "", json_string_value(word));
        free(text);
        text = longer;
    }
    return text;
}

void s4d_calibrate_describe(struct s4d_calibrate *c, const struct s4d_bench *b)
{
    const char *when = json_string_value(json_object_get(c->provenance, "time"));
    char *command = command_line(c->provenance), *libs = libraries(b->backend);
    json_t *device = b->backend->state(&b->device);
    const char *name = json_string_value(json_object_get(device, "name"));
    c->result.precision = c->precision;
    c->result.ranks = c->world->size;
    c->result.tf32 = c->config->tf32;
    c->result.active = b->peers.active;
    c->result.node_ranks = s4d_bench_ranks_per_node(c->world);
    if (b->backend->own_devices)
        c->result.device_bytes = json_number_value(json_object_get(device, "memory_bytes"));
    c->result.memory_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    c->result.device = s4d_strdup(name ? name : "a device without a name");
    json_decref(device);
    c->result.source = s4d_asprintf("mpirun -n %d %s; %s; %s", c->world->size, command,
                                    when ? when : "no date", libs);
    s4d_provenance_print(c->provenance, stdout);
    printf("# %s, %d rank%s, %d compute at a time; %s\n", c->result.device, c->world->size,
           c->world->size == 1 ? "" : "s", b->peers.active, libs);
    printf("# %d programs; medians; a variation above %.0f %% is too noisy to use (!)\n",
           c->n_programs, 100 * S4D_PROBE_NOISY);
    fflush(stdout);
    free(command);
    free(libs);
}

static void print_times(const struct s4d_probed *p)
{
    printf("%12.2f %12.2f %9.1f%c", 1e6 * p->t.median, 1e6 * p->t.p99, 100 * p->t.variation,
           p->noisy ? '!' : ' ');
}

static void print_op(const struct s4d_calibrated_op *op)
{
    char shape[96];
    double rate = (double)op->bytes, scale = 1e-9;
    const char *unit = "GB/s";
    if (op->kind == S4D_OP_GEMM) {
        snprintf(shape, sizeof shape, "%lldx%lldx%lld %c%c", (long long)op->c.gemm.m,
                 (long long)op->c.gemm.n, (long long)op->c.gemm.k,
                 op->c.gemm.transpose_a ? 't' : 'n', op->c.gemm.transpose_b ? 't' : 'n');
        rate = 2 * (double)op->c.gemm.m * (double)op->c.gemm.n * (double)op->c.gemm.k;
        unit = "GFLOP/s";
    } else if (s4d_op_kinds[op->kind].op_class == S4D_CLASS_ATTENTION) {
        double s = (double)op->c.attention.seq;
        snprintf(shape, sizeof shape, "b%lld s%lld h%lld d%lld", (long long)op->c.attention.batch,
                 (long long)op->c.attention.seq, (long long)op->c.attention.heads,
                 (long long)op->c.attention.head_dim);
        rate = 4 * (double)(op->c.attention.batch * op->c.attention.heads) * s * s *
               (double)op->c.attention.head_dim * (op->c.attention.causal ? 0.5 : 1) *
               (op->kind == S4D_OP_ATTENTION_BACKWARD ? 2.5 : 1);
        unit = "GFLOP/s";
    } else {
        snprintf(shape, sizeof shape, "%lld B", (long long)op->bytes);
    }
    printf("%-22s %-24s ", s4d_op_kinds[op->kind].name, shape);
    print_times(&op->probed);
    printf(" %10.3f %s\n", scale * rate / op->probed.t.median, unit);
}

static void print_collective(const struct s4d_calibrated_collective *p)
{
    char shape[64];
    snprintf(shape, sizeof shape, "%d ranks, %lld B", p->ranks, (long long)p->bytes);
    printf("%-22s %-24s ", s4d_op_kinds[p->kind].name, shape);
    print_times(&p->probed);
    printf(" %10.3f GB/s%s\n", 1e-9 * s4d_calibrated_bus_Bps(p),
           p->probed.wrong > 0 ? "  WRONG VALUES" : "");
}

void s4d_calibrate_print(const struct s4d_calibrate *c)
{
    const struct s4d_calibration *r = &c->result;
    int noisy = 0, n = r->n_ops + r->n_collectives;
    double wrong = 0;
    printf("%-22s %-24s %12s %12s %10s %10s\n", "op", "shape", "time", "p99", "variation", "rate");
    printf("%-22s %-24s %12s %12s %10s\n", "", "", "(us)", "(us)", "(%)");
    for (int i = 0; i < r->n_ops; i++) {
        print_op(&r->op[i]);
        noisy += r->op[i].probed.noisy;
    }
    for (int i = 0; i < r->n_collectives; i++) {
        print_collective(&r->collective[i]);
        noisy += r->collective[i].probed.noisy;
        wrong += r->collective[i].probed.wrong;
    }
    if (r->launch.t.n > 0)
        printf("# launch %.3f us\n", 1e6 * r->launch.t.median);
    if (r->beside.t.n > 0)
        printf("# beside an all-reduce a matrix product keeps %.2f of its rate%s\n",
               r->beside.t.median, r->beside.noisy ? " (!)" : "");
    printf("# %d measurements, %d too noisy to use, %.0f wrong values  %s\n", n, noisy, wrong,
           wrong > 0 ? "FAILED" : "OK");
    if (c->world->rank == 0 && noisy > 0)
        s4d_warn("%d of %d measurements vary by more than %.0f %%: too noisy to use; the file says "
                 "which tables they are in",
                 noisy, n, 100 * S4D_PROBE_NOISY);
}
