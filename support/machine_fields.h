/* SPDX-License-Identifier: Apache-2.0 */
/* The quantities of a machine as one table: reader, writer, overrides and one-line machines all
 * walk it, so a new constant is a field of support/machine.h and a row. Private to what makes
 * machines in support. */
#ifndef S4D_SUPPORT_MACHINE_FIELDS_H
#define S4D_SUPPORT_MACHINE_FIELDS_H

#include "support/machine.h"

struct s4d_machine_field {
    const char *section; /* "device", "node", "fabric", "library", "library.ring", "library.tree" */
    const char *key;     /* the suffix is the unit */
    size_t offset;       /* in struct s4d_machine */
    int count;           /* 1, or S4D_PROTOCOLS: a list [LL, LL128, Simple] */
    enum { S4D_POSITIVE, S4D_NOT_NEGATIVE, S4D_UNLIMITED_TOO, S4D_FRACTION } range;
    const char
        *absent; /* optional, unlimited where a file does not have it, because ...; or NULL */
};
extern const struct s4d_machine_field s4d_machine_fields[]; /* ends with a row without a key */
extern const char *const s4d_protocol_names[S4D_PROTOCOLS]; /* "ll", "ll128", "simple" */

struct s4d_quantity *s4d_field_quantity(const struct s4d_machine *m,
                                        const struct s4d_machine_field *field);
/* Whether the library is NCCL or its like, with hops and caps; else it has one plain channel. */
bool s4d_library_has_constants(const struct s4d_library *l);
/* Whether the field is used by this machine: library constants only where there is a library. */
bool s4d_field_used(const struct s4d_machine *m, const struct s4d_machine_field *field);

bool s4d_ends_with(const char *text, const char *end);
/* Parses text in the unit of key's suffix; "unlimited" is INFINITY. 0, or -1 (exit 65). */
int s4d_parse_quantity(const char *key, const char *text, double *value, struct s4d_error *err);
/* Whether a key's suffix is no unit: a plain number, as "nodes_per_group". */
bool s4d_key_has_no_unit(const char *key);
/* "1555 GB/s", "0.85", "unlimited": what s4d_parse_quantity reads, to 9 digits, the shortest. */
void s4d_format_quantity(const char *key, double value, char *text, size_t size);
/* Whether a value lies in the field's range; else -1 (exit 65). */
int s4d_field_check(const struct s4d_machine_field *field, double value, struct s4d_error *err);

/* Whether text is a word, as fabric parameters may be ("adaptive"): it starts with a letter. */
bool s4d_is_word(const char *text);
/* Sets a parameter to a number in the unit of its key's suffix, or to a word. 0, or -1 (exit 65).
 */
int s4d_parameter_set(struct s4d_parameter *p, const char *text, enum s4d_tag tag,
                      const char *source, struct s4d_error *err);

void s4d_quantity_set(struct s4d_quantity *q, double value, enum s4d_tag tag, const char *source);

/* Each of these: 0, or -1 with *err. */
int s4d_machine_read(struct s4d_machine *m, const char *file, const char *text, size_t n,
                     struct s4d_error *err);
int s4d_machine_synthetic(struct s4d_machine *m, const char *line, struct s4d_error *err);
/* 1: the setting is "fabric.topology=NAME" and was taken, 0: it is another, -1: *err. */
int s4d_machine_override_topology(struct s4d_machine *m, const char *setting,
                                  struct s4d_error *err);

#endif
