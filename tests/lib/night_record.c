/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/night_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "support/memory.h"

void night_near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g to %.3g", got, expected, tolerance);
}

json_t *night_json(const char *text)
{
    char *copy = s4d_strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *v = json_loads(copy, 0, NULL);
    assert_non_null(v);
    free(copy);
    return v;
}
