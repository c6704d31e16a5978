/* SPDX-License-Identifier: Apache-2.0 */
/* Strict YAML reading over libyaml: a tree that remembers lines, and errors as file:line.
 *
 * Refused: aliases and anchors (YAML bombs), tags, directives, several documents, repeated keys,
 * more than 64 levels, more than a million values, files over 16 MiB, empty files. */
#ifndef S4D_SUPPORT_YAML_H
#define S4D_SUPPORT_YAML_H

#include <stddef.h>

#include "support/error.h"

enum s4d_yaml_kind { S4D_YAML_SCALAR, S4D_YAML_SEQUENCE, S4D_YAML_MAPPING };

struct s4d_yaml_node {
    enum s4d_yaml_kind kind;
    const char *file;
    int line;
    const char *key;              /* of this node in its mapping, or NULL */
    const char *text;             /* of a scalar */
    struct s4d_yaml_node **child; /* of a sequence; of a mapping in file order, each with its key */
    int n;
};

/* 0, or -1: no such file, unreadable (exit 65), bad YAML (exit 65, file:line). Free with
 * s4d_yaml_free. */
int s4d_yaml_read(const char *file, struct s4d_yaml_node **root, struct s4d_error *err);
int s4d_yaml_parse(const char *name, const char *text, size_t n, struct s4d_yaml_node **root,
                   struct s4d_error *err);
void s4d_yaml_free(struct s4d_yaml_node *root);

/* The child of a mapping, or NULL. */
const struct s4d_yaml_node *s4d_yaml_get(const struct s4d_yaml_node *mapping, const char *key);
/* Fails with "file:line: key" filled in. */
int s4d_yaml_fail(const struct s4d_yaml_node *node, struct s4d_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
