/* SPDX-License-Identifier: Apache-2.0 */
#ifndef S4D_CLI_PROGRAM_HASH_H
#define S4D_CLI_PROGRAM_HASH_H

#include "support/error.h"

/* 16 hex digits of this program's own file: another program may give other times. 0, or -1 (70). */
int s4d_program_hash(char hex[17], struct s4d_error *err);

#endif
