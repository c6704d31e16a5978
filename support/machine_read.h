/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the machine reader: YAML nodes to the structures of support/machine.h. Each returns 0,
 * or -1 with *err (exit 65, file:line). Private to support/machine*.c. */
#ifndef S4D_SUPPORT_MACHINE_READ_H
#define S4D_SUPPORT_MACHINE_READ_H

#include <stdint.h>

#include "support/machine_fields.h"
#include "support/yaml.h"

/* The child, of the kind asked for; else the error says what is missing or found instead. */
int s4d_read_child(const struct s4d_yaml_node *mapping, const char *key, enum s4d_yaml_kind kind,
                   const struct s4d_yaml_node **child, struct s4d_error *err);
/* Every key of the mapping is among the n known ones; the nearest is named. */
int s4d_read_only(const struct s4d_yaml_node *mapping, const char *const *known, int n,
                  struct s4d_error *err);
int s4d_read_origin(const struct s4d_yaml_node *mapping, enum s4d_tag *tag, char **source,
                    struct s4d_error *err);
int s4d_read_int(const struct s4d_yaml_node *scalar, int64_t min, int64_t max, int *value,
                 struct s4d_error *err);
/* Element i of a list, in the unit of the suffix of `key`. */
int s4d_read_value(const struct s4d_yaml_node *list, int i, const char *key, double *value,
                   struct s4d_error *err);
int s4d_read_name(const struct s4d_yaml_node *mapping, const char *key, char *text, size_t size,
                  struct s4d_error *err);
/* Fields of one section of the table. */
int s4d_read_fields(struct s4d_machine *m, const char *section, const struct s4d_yaml_node *mapping,
                    struct s4d_error *err);
/* { value: V, tag: T, source: S } */
int s4d_read_quantity(const struct s4d_yaml_node *mapping, const char *key, struct s4d_quantity *q,
                      struct s4d_error *err);
/* Two lists of equal length, x ascending: key_x and key_y also give the units. */
int s4d_read_curve(const struct s4d_yaml_node *mapping, const char *key_x, const char *key_y,
                   struct s4d_curve *curve, struct s4d_error *err);

/* Known keys of a section: its fields of the table, then the others; returns how many. */
enum { S4D_KEYS = 32 };
int s4d_known_keys(const struct s4d_machine *m, const char *section, const char *const *others,
                   int n_others, const char *keys[S4D_KEYS]);

int s4d_read_node(struct s4d_machine *m, const struct s4d_yaml_node *section,
                  struct s4d_error *err);
int s4d_read_device(struct s4d_machine *m, const struct s4d_yaml_node *section,
                    struct s4d_error *err);
int s4d_read_library(struct s4d_machine *m, const struct s4d_yaml_node *section,
                     struct s4d_error *err);

#endif
