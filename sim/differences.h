/* SPDX-License-Identifier: Apache-2.0 */
/* What is different about single parts of a machine: a dead or slow link, a slow NIC, a slow
 * device; and rates of all of it (sim/rates.h).
 *
 * Written "links.NAME=VALUE", "nics.NAME=VALUE" or "devices.NAME=VALUE", NAME as `scale4d route`
 * shows it ("n3.gpu0->gpu2", "leaf4.out"; "n3.nic1" is both links of a NIC; "n3.gpu0"), or a
 * pattern of several, with * and ?. VALUE of a link or NIC: "dead", a part of its bandwidth
 * ("0.5"), or a bandwidth ("5 GB/s"); of a device: a part of its speed. "rates.NAME=VALUE", NAME
 * as in sim/rates.h ("z", "gemm"), VALUE a part of what it was. Later ones go over earlier ones. */
#ifndef S4D_SIM_DIFFERENCES_H
#define S4D_SIM_DIFFERENCES_H

#include "sim/cluster.h"
#include "support/option.h" /* for: struct s4d_texts */

enum s4d_difference_part { S4D_LINKS, S4D_NICS, S4D_DEVICES, S4D_RATES };

struct s4d_difference {
    enum s4d_difference_part part;
    char *name, *text, *where; /* text: as written */
    int exit;                  /* what a name of nothing ends with: 64 from --set, 65 from a file */
    double part_of;            /* of what it was; 0: dead; NAN: Bps instead */
    double Bps;
};
struct s4d_differences {
    struct s4d_difference *v;
    int n, cap;
    struct s4d_texts places; /* "diff.yaml:2", of every setting that was appended to `set` */
};

bool s4d_is_difference(const char *setting);
/* One setting of the command line. 0, or -1 (exit 64). */
int s4d_differences_add(struct s4d_differences *d, const char *setting, struct s4d_error *err);
/* A YAML file with the mappings links, nics, devices, rates (NAME: VALUE) and set (KEY: VALUE, of
 * whatever
 * --set takes; of the machine: appended to `set` as "KEY=VALUE"); all may be missing. 0, or -1
 * (exit 65, file:line). */
int s4d_differences_read(struct s4d_differences *d, const char *file, struct s4d_texts *set,
                         struct s4d_error *err);
/* The same from n bytes; file is for messages. */
int s4d_differences_parse(struct s4d_differences *d, const char *file, const char *text, size_t n,
                          struct s4d_texts *set, struct s4d_error *err);
/* Of a fault in one of those settings, "--set KEY": says the line of the file instead (exit 65). */
void s4d_differences_locate(const struct s4d_differences *d, const struct s4d_texts *set,
                            struct s4d_error *err);
void s4d_differences_free(struct s4d_differences *d);

/* Whether any is of a single part of the machine, not of rates alone. */
bool s4d_differences_of_parts(const struct s4d_differences *d);
/* The first that is of rates, as written; NULL: none is. */
const char *s4d_differences_rates(const struct s4d_differences *d);
/* Sets capacities (0: dead), speeds and rates in a cluster: of the whole machine, unless rates are
 * all there is. 0, or -1: a name that is of nothing. */
int s4d_differences_apply(const struct s4d_differences *d, struct s4d_cluster *c,
                          struct s4d_error *err);

#endif
