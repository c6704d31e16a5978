/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run layers: what its files share. */
#ifndef S4D_CLI_RUN_LAYERS_H
#define S4D_CLI_RUN_LAYERS_H

#include <jansson.h>

#include "cli/run/waiting.h"
#include "real/mpi/world.h"
#include "real/peak.h"
#include "real/probed.h"
#include "schedule/program.h"
#include "schedule/schedule_options.h"
#include "workloads/workload.h"

struct s4d_layers_config {
    int backend, threads, samples, layer, gemm_tuning;
    char *workload, *gemm_cache;
    struct s4d_waiting waiting;
    bool tf32, json;
    struct s4d_schedule_options schedule;
};

struct s4d_layers_row {
    const struct s4d_op *op;
    struct s4d_probed probed;
};

struct s4d_layers {
    const struct s4d_layers_config *config;
    struct s4d_world *world;
    struct s4d_workload workload;
    struct s4d_program program;
    int layer;
    struct s4d_layers_row *row;
    int n, cap;
    int64_t best_n; /* of the square product that is the best product; 0: it is one of the layer */
    double best_flops_per_s;
    struct s4d_peak peak;
    json_t *devices; /* of rank 0 */
};

/* layers_record.c: the record of what was measured, on rank 0; and it for people. */
json_t *s4d_layers_record(const struct s4d_layers *j, int argc, char **argv);
void s4d_layers_print(const struct s4d_layers *j, const json_t *record);

#endif
