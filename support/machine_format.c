/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/machine_fields.h"
#include "support/units.h"

/* Units by the suffix of a key, largest first; bytes decimal, then binary. */
struct unit {
    const char *suffix, *name;
    double size;
};
static const struct unit units[] = {
    {"flops_per_s", "PFLOP/s", 1e15},
    {"flops_per_s", "TFLOP/s", 1e12},
    {"flops_per_s", "GFLOP/s", 1e9},
    {"flops_per_s", "FLOP/s", 1},
    {"_Bps", "TB/s", 1e12},
    {"_Bps", "GB/s", 1e9},
    {"_Bps", "MB/s", 1e6},
    {"_Bps", "B/s", 1},
    {"_bytes", "GB", 1e9},
    {"_bytes", "GiB", 1073741824},
    {"_bytes", "MB", 1e6},
    {"_bytes", "MiB", 1048576},
    {"_bytes", "kB", 1e3},
    {"_bytes", "KiB", 1024},
    {"_bytes", "B", 1},
    {"_s", "s", 1},
    {"_s", "ms", 1e-3},
    {"_s", "us", 1e-6},
    {"_s", "ns", 1e-9},
};

static const char *suffix_of(const char *key)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (s4d_ends_with(key, units[i].suffix))
            return units[i].suffix;
    }
    return NULL;
}

static const char *base_unit(const char *suffix)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].size == 1 && strcmp(units[i].suffix, suffix) == 0)
            return units[i].name;
    }
    s4d_bug(__FILE__, __LINE__, suffix, "no unit of size 1");
}

static const char *nine_digits(double value, char *text, size_t size)
{
    snprintf(text, size, "%.9g", value);
    return text;
}

/* The shortest of the ways to write the value to 9 digits: 1555 GB/s, not 1.56 TB/s. In base
 * units where it is out of all reach. */
void s4d_format_quantity(const char *key, double value, char *text, size_t size)
{
    const char *suffix = suffix_of(key);
    char plain[64];
    s4d_format_number(strtod(nine_digits(value, plain, sizeof plain), NULL), plain, sizeof plain);
    if (isinf(value) || !suffix) {
        snprintf(text, size, "%s", isinf(value) ? "unlimited" : plain);
        return;
    }
    snprintf(text, size, "%s %s", plain, base_unit(suffix));
    size_t best = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        char number[32];
        double v = value / units[i].size;
        snprintf(number, sizeof number, "%.9g", v);
        bool fits = v == 0 || (v >= 1 && v < 1e4);
        if (strcmp(units[i].suffix, suffix) != 0 || !fits)
            continue;
        if (best == 0 || strlen(number) < best) {
            best = strlen(number);
            snprintf(text, size, "%s %s", number, units[i].name);
        }
    }
}
