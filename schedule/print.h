/* SPDX-License-Identifier: Apache-2.0 */
/* The program as text, one op a line, good enough to learn the algorithm from; and as JSON. */
#ifndef S4D_SCHEDULE_PRINT_H
#define S4D_SCHEDULE_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "schedule/program.h"

void s4d_print_program(const struct s4d_program *program, FILE *out);
json_t *s4d_program_json(const struct s4d_program *program); /* new reference */

#endif
