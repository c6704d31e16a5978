/* SPDX-License-Identifier: Apache-2.0 */
/* Run records: one JSON line a run, the same schema from both programs.
 *
 * A record is an object with "kind", inputs, results, and "provenance" (tool version, commit, argv,
 * host, time, environment). Everything but provenance is identical from run to run; with
 * SOURCE_DATE_EPOCH all of it. */
#ifndef S4D_SUPPORT_RECORD_H
#define S4D_SUPPORT_RECORD_H

#include <jansson.h>
#include <stdio.h>

#include "support/error.h"

extern const char *const s4d_version;       /* "0.1.0" */
extern const char *const s4d_commit;        /* git describe of the build, or "unknown" */
extern const char *const s4d_model_version; /* changes whenever simulated times may change */

json_t *s4d_provenance(int argc, char **argv); /* new reference; keys in a fixed order */
/* One line, keys in insertion order, 17 digits. 0, or -1 (exit 74). */
int s4d_record_write(json_t *record, FILE *out, struct s4d_error *err);
/* "# scale4d 0.1.0 ..." lines from a provenance object, for human output. */
void s4d_provenance_print(const json_t *provenance, FILE *out);
/* 16 hex digits of FNV-1a 64 over bytes. */
void s4d_hash(const void *bytes, size_t n, char hex[17]);

#endif
