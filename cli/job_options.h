/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the option tables of commands that are given a job or its machine: one name, one range
 * and one help text, wherever a command keeps the value. at: its offset in the table's struct. */
#ifndef S4D_CLI_JOB_OPTIONS_H
#define S4D_CLI_JOB_OPTIONS_H

#include <stdbool.h>

#include "support/option.h"

/* The three that every job needs, each with what it should be: 0, or -1 (exit 64) with the first
 * that is not given (NULL, false). */
int s4d_job_given(const char *machine, const char *workload, bool gpus, struct s4d_error *err);

/* char * */
#define S4D_OPTION_MACHINE(at)                                                                     \
    {                                                                                              \
        .name = "machine", .argument = "M", .type = S4D_OPT_TEXT, .offset = (at),                  \
        .help = "a name (scale4d machines), a .yaml file, or synthetic:key=value,..."              \
    }

/* char * */
#define S4D_OPTION_WORKLOAD(at)                                                                    \
    {                                                                                              \
        .name = "workload", .argument = "W", .type = S4D_OPT_TEXT, .offset = (at),                 \
        .help = "a name (scale4d workloads), a .yaml file or a Hugging Face config.json"           \
    }

/* int; 0: not given */
#define S4D_OPTION_GPUS(at)                                                                        \
    {                                                                                              \
        .name = "gpus", .argument = "N", .type = S4D_OPT_INT, .offset = (at), .min = 1,            \
        .max = 1 << 20, .help = "devices, a process each"                                          \
    }

/* struct s4d_texts */
#define S4D_OPTION_SET(at)                                                                         \
    {                                                                                              \
        .name = "set", .argument = "KEY=VALUE", .type = S4D_OPT_LIST, .offset = (at),              \
        .help = "override a value of the machine; may be repeated"                                 \
    }

/* int; 0: the command asks s4d_processors() */
#define S4D_OPTION_WORKERS(at)                                                                     \
    {                                                                                              \
        .name = "workers", .key = 'j', .argument = "N", .type = S4D_OPT_INT, .offset = (at),       \
        .min = 0, .max = 4096, .help = "simulations at once; 0: one per processor"                 \
    }

#endif
