/* SPDX-License-Identifier: Apache-2.0 */
/* The iteration of a stored record, simulated at given rates.
 *
 * The machine is one that is named, else one made of the rates: as many nodes and devices on a
 * single switch, of their matrix products' rate. Either way computing and every stream's
 * collectives are then set to what was measured (s4d_replay_rates), so that of the machine only its
 * shape remains: who shares which links, and how times go with sizes. */
#ifndef S4D_CLI_TRACK_REPLAY_H
#define S4D_CLI_TRACK_REPLAY_H

#include "cli/track/night_rates.h"
#include "sim/simulate.h"
#include "support/option.h" /* for: struct s4d_texts */

struct s4d_replay {
    struct s4d_machine machine;
    struct s4d_workload workload;
    struct s4d_simulation simulation; /* points to both: stays where it is */
    bool made;                        /* the machine is made of the rates */
    /* What the simulation takes for each part of an iteration alone, at rates of 1: */
    double class_s[S4D_CLASS_HOST + 1]; /* of a rank, by class of its computing ops */
    double gemm_flops;
    double busbw_Bps[S4D_STREAMS]; /* of all a stream's collectives together; 0: it has none */
};

/* How a night was: rates (sim/rates.h), and the slowest node's (or its one rank's) speed. */
struct s4d_night_state {
    struct s4d_rates rates;
    double slow; /* part of the others' speed */
    int slow_rank;
    bool slow_is_rank;
};

struct s4d_replay_options {
    char *machine; /* a name, a file or a line; NULL: the record's machine.name, else made of
                            the rates */
    struct s4d_texts workloads; /* files to look for the record's in, before the workloads folder */
    int workers;                /* processes at once */
};

/* Their rows in a table of options: --machine, --workload. at: where the struct lies. */
#define S4D_REPLAY_OPTIONS(at)                                                                     \
    {.name = "machine",                                                                            \
     .argument = "M",                                                                              \
     .type = S4D_OPT_TEXT,                                                                         \
     .offset = (at) + offsetof(struct s4d_replay_options, machine),                                \
     .help = "what is simulated: a name (scale4d machines), a .yaml file, or synthetic:...; "      \
             "default: what the record names, else made of the nights' rates"},                    \
    {                                                                                              \
        .name = "workload", .argument = "FILE", .type = S4D_OPT_LIST,                              \
        .offset = (at) + offsetof(struct s4d_replay_options, workloads),                           \
        .help = "a model that the records train and the workloads folder lacks; may be repeated"   \
    }
/* What they name must be there, whether it is needed or not. 0, or -1 (exit 65). */
int s4d_replay_options_check(const struct s4d_replay_options *options, struct s4d_error *err);

/* record: of kind train or simulate. like: what a machine is made of. 0 (s4d_replay_free), or -1: a
 * workload or machine that is not known, or a workload of another content than the record's (65),
 * inputs that are missing or do not fit (64, 65). */
int s4d_replay_open(struct s4d_replay *r, const json_t *record, const struct s4d_night_rates *like,
                    const struct s4d_replay_options *options, struct s4d_error *err);
void s4d_replay_free(struct s4d_replay *r);

/* The state in which the simulation takes for each part alone what was measured; parts that were
 * not measured stay at 1. */
struct s4d_night_state s4d_replay_state(const struct s4d_replay *r,
                                        const struct s4d_night_rates *measured);
/* Seconds of the iteration in n states. 0, or -1. */
int s4d_replay_times(const struct s4d_replay *r, const struct s4d_night_state *states, int n,
                     double *time_s, struct s4d_error *err);

#endif
