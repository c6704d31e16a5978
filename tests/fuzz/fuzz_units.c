/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes to every number reader: no crash; what is taken is finite and not negative where it
 * cannot be. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "support/memory.h"
#include "support/units.h"

#include <stdlib.h>

typedef int (*parser)(const char *text, double *value, struct s4d_error *err);

static void check(parser parse, const char *text)
{
    struct s4d_error err;
    double value = 0;
    if (parse(text, &value, &err) == 0)
        S4D_ASSERT(isfinite(value) && value >= 0, "'%s' gave %g", text, value);
    else
        S4D_ASSERT(strlen(err.text) < 400 && strstr(err.text, "expected"), "%s", err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = s4d_malloc(n + 1);
    memcpy(text, data, n);
    text[n] = '\0';
    check(s4d_parse_bandwidth, text);
    check(s4d_parse_time, text);
    check(s4d_parse_flops, text);
    check(s4d_parse_bytes, text);
    int64_t v = 0;
    if (s4d_parse_size(text, &v, NULL) == 0)
        S4D_ASSERT(v >= 0, "'%s'", text);
    if (s4d_parse_int(text, INT64_MIN, INT64_MAX, &v, NULL) == 0)
        S4D_ASSERT(v == strtoll(text, NULL, 10), "'%s'", text);
    if (s4d_parse_int(text, -7, 9, &v, NULL) == 0)
        S4D_ASSERT(v >= -7 && v <= 9, "'%s'", text);
    double d = 0;
    if (s4d_parse_number(text, -2.5, 1e30, &d, NULL) == 0)
        S4D_ASSERT(d >= -2.5 && d <= 1e30, "'%s'", text);
    free(text);
    return 0;
}
