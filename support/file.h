/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, and the names of a folder's data files. */
#ifndef S4D_SUPPORT_FILE_H
#define S4D_SUPPORT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/error.h"

enum { S4D_FILE_MAX = 16 * 1024 * 1024 }; /* bytes */

/* Reads a file of at most S4D_FILE_MAX bytes into fresh memory, with a '\0' behind its n bytes. 0,
 * or -1 (exit 65): no such file, a folder, unreadable, too large. */
int s4d_file_read(const char *file, char **bytes, size_t *n, struct s4d_error *err);

/* Whether a file could be written there, asked before the work that it will hold: its folder takes
 * new files, and no folder has its name; or it is a pipe or a device. 0, or -1 (exit 74). */
int s4d_file_writable(const char *file, struct s4d_error *err);

/* Whether two names are of one ordinary file, there or yet to be written. */
bool s4d_file_same(const char *a, const char *b);

struct s4d_output {
    const char *option, *file; /* file: NULL where the option is not given */
};
/* Asked before the work that they will hold: each is writable, and none over another. 0, or -1
 * (exit 74; 64: two are one file). */
int s4d_outputs_check(const struct s4d_output *v, int n, struct s4d_error *err);

/* A number that tells files apart without reading all of a large one: of the size and of 256 blocks
 * of 4 KiB spread over the file evenly, the first and the last included (so of every byte up to 1
 * MiB). 0, or -1 (exit 65): also of what is no ordinary file. */
int s4d_file_fingerprint(const char *file, uint64_t *fingerprint, struct s4d_error *err);

/* Names of the .yaml files of a folder, without the extension, sorted by byte; an absent folder has
 * none. Returns how many; caller frees with s4d_names_free. */
int s4d_file_names(const char *folder, char ***names);
void s4d_names_free(char **names, int n);

/* The folder that holds sim/machines and workloads: share/scale4d beside the bin of an installed
 * program, else the source tree of the build. Found once; valid until the program ends. */
const char *s4d_data_folder(void);

/* Whether a machine's or workload's name is a path: has a '/' or ends in ".yaml". */
bool s4d_is_path(const char *name);

#endif
