/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of the machine a job gets, and in which order its ranks fill them. */
#ifndef S4D_SIM_PLACEMENT_H
#define S4D_SIM_PLACEMENT_H

#include "sim/cluster.h"

enum s4d_placement_kind {
    S4D_NODE_MAJOR, /* the machine's first nodes, in order */
    S4D_RANDOM,     /* any of its nodes, in any order */
    S4D_FRAGMENTED, /* runs of 1 to 16 neighbours scattered over the machine, in ascending order:
                       what a scheduler hands out on a busy machine */
    S4D_HOSTS       /* as a file lists them */
};

struct s4d_placement {
    enum s4d_placement_kind kind;
    uint64_t seed;
    char *file; /* of hosts, one a line; '#' starts a comment */
    char **host;
    int *line;
    int n_hosts, cap_hosts, cap_lines, n_lines;
};

/* "node-major", "random", "random:7", "fragmented", "fragmented:7"; the seed is 1 unless given. 0,
 * or -1 (exit 64). */
int s4d_placement_parse(struct s4d_placement *p, const char *text, struct s4d_error *err);
/* Reads a file of hosts. 0, or -1 (exit 65): none, unreadable, a host twice. */
int s4d_placement_read(struct s4d_placement *p, const char *file, struct s4d_error *err);
/* The same from n bytes; file is for messages. */
int s4d_placement_parse_hosts(struct s4d_placement *p, const char *file, const char *bytes,
                              size_t n, struct s4d_error *err);
void s4d_placement_free(struct s4d_placement *p);
/* As s4d_placement_parse takes it; "hosts" for a file. */
const char *s4d_placement_text(const struct s4d_placement *p, char *text, size_t size);

/* Places a job of n nodes on a cluster of the whole machine, which has as many. 0, or -1 (exit 65):
 * an unknown host, fewer hosts than nodes. */
int s4d_placement_apply(const struct s4d_placement *p, struct s4d_cluster *c, int n,
                        struct s4d_error *err);

#endif
