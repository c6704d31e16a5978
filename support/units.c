/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units. The text is matched by hand before strtod sees it, because strtod takes
 * signs, exponents, hexadecimal, inf and nan. */
#include "support/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/quote.h"

/* A value of the unit is number * multiply / divide: both exact, so "2 us" is the double nearest to
 * 2e-6, which 2 * 1e-6 need not be. */
struct unit {
    const char *name;
    double multiply, divide;
};

static const struct unit bandwidths[] = {
    {"B/s", 1, 1},     {"kB/s", 1e3, 1},  {"MB/s", 1e6, 1}, {"GB/s", 1e9, 1},
    {"TB/s", 1e12, 1}, {"b/s", 1, 8},     {"kb/s", 1e3, 8}, {"Mb/s", 1e6, 8},
    {"Gb/s", 1e9, 8},  {"Tb/s", 1e12, 8}, {NULL, 0, 0},
};
static const struct unit times[] = {
    {"s", 1, 1}, {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9}, {NULL, 0, 0},
};
static const struct unit rates[] = {
    {"FLOP/s", 1, 1},     {"kFLOP/s", 1e3, 1},  {"MFLOP/s", 1e6, 1},  {"GFLOP/s", 1e9, 1},
    {"TFLOP/s", 1e12, 1}, {"PFLOP/s", 1e15, 1}, {"EFLOP/s", 1e18, 1}, {NULL, 0, 0},
};
static const struct unit sizes[] = {
    {"B", 1, 1},         {"kB", 1e3, 1},         {"MB", 1e6, 1},
    {"GB", 1e9, 1},      {"TB", 1e12, 1},        {"KiB", 1024, 1},
    {"MiB", 1048576, 1}, {"GiB", 1073741824, 1}, {"TiB", 1099511627776, 1},
    {NULL, 0, 0},
};

const char *s4d_format_number(double value, char *text, int size)
{
    enum { MOST = 40 };        /* decimals; beyond them the value reads back rounded */
    if (!(fabs(value) < 1e40)) /* NaN too */
        snprintf(text, (size_t)size, "%g", value);
    for (int decimals = 0; decimals <= MOST && fabs(value) < 1e40; decimals++) {
        snprintf(text, (size_t)size, "%.*f", decimals, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return text;
}

/* The length of "12", "12.5" or "0.5" at the start of text, or 0. */
static size_t decimal_length(const char *text)
{
    size_t whole = strspn(text, "0123456789");
    if (whole == 0 || text[whole] != '.')
        return whole;
    size_t fraction = strspn(text + whole + 1, "0123456789");
    return fraction ? whole + 1 + fraction : whole;
}

int s4d_parse_int(const char *text, int64_t min, int64_t max, int64_t *value, struct s4d_error *err)
{
    bool negative = text[0] == '-' && min < 0;
    const char *digits = text + negative;
    size_t n = strspn(digits, "0123456789");
    bool plain = n > 0 && digits[n] == '\0';
    int64_t v = 0;
    bool fits = plain;
    for (size_t i = 0; fits && i < n; i++) {
        int digit = digits[i] - '0';
        fits = v <= (INT64_MAX - digit) / 10;
        if (fits)
            v = 10 * v + digit;
    }
    v = negative ? -v : v;
    if (fits && v >= min && v <= max) {
        *value = v;
        return 0;
    }
    s4d_fail(err, S4D_EXIT_DATA, "", "expected an integer in [%" PRId64 ", %" PRId64 "], got %s",
             min, max, s4d_quote(text).text);
    bool whole = plain || (text[0] == '-' && text[1] && !text[1 + strspn(text + 1, "0123456789")]);
    return whole ? -1 : s4d_hint(err, "write 4096, not 4k or 1e9");
}

/* For people: 1e+30, not thirty digits. */
static void format_bound(double value, char *text, int size)
{
    if (fabs(value) >= 1e15)
        snprintf(text, (size_t)size, "%g", value);
    else
        s4d_format_number(value, text, size);
}

int s4d_parse_number(const char *text, double min, double max, double *value, struct s4d_error *err)
{
    bool negative = text[0] == '-' && min < 0;
    size_t n = decimal_length(text + negative);
    bool plain = n > 0 && text[negative + n] == '\0';
    double v = plain ? strtod(text, NULL) : NAN;
    if (isfinite(v) && v >= min && v <= max) {
        *value = v;
        return 0;
    }
    char low[64], high[64], range[160] = "";
    format_bound(min, low, sizeof low);
    format_bound(max, high, sizeof high);
    if (isfinite(min) && isfinite(max))
        snprintf(range, sizeof range, " in [%s, %s]", low, high);
    else if (isfinite(min))
        snprintf(range, sizeof range, " of %s or more", low);
    else if (isfinite(max))
        snprintf(range, sizeof range, " of %s or less", high);
    s4d_fail(err, S4D_EXIT_DATA, "", "expected a number%s, got %s", range, s4d_quote(text).text);
    bool decimal = plain || (text[0] == '-' && text[1] && !text[1 + decimal_length(text + 1)]);
    return decimal ? -1 : s4d_hint(err, "write a plain decimal: 0.00001, not 1e-5");
}

static int fail_unit(const char *what, const struct unit *units, const char *hint, const char *text,
                     struct s4d_error *err)
{
    char list[128] = "";
    size_t at = 0;
    for (int i = 0; units[i].name; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? " " : "", units[i].name);
    s4d_fail(err, S4D_EXIT_DATA, "", "expected %s, a decimal number and one of %s, got %s", what,
             list, s4d_quote(text).text);
    return s4d_hint(err, "%s", hint);
}

static int parse_unit(const char *what, const struct unit *units, const char *hint,
                      const char *text, double *value, struct s4d_error *err)
{
    size_t n = decimal_length(text);
    const char *name = text + n + (n > 0 && text[n] == ' ');
    for (int i = 0; n > 0 && units[i].name; i++) {
        if (strcmp(name, units[i].name) != 0)
            continue;
        double v = strtod(text, NULL) * units[i].multiply / units[i].divide;
        if (!isfinite(v))
            break;
        *value = v;
        return 0;
    }
    return fail_unit(what, units, hint, text, err);
}

int s4d_parse_bandwidth(const char *text, double *Bps, struct s4d_error *err)
{
    return parse_unit("a bandwidth", bandwidths, "B is bytes, b is bits: 25 GB/s = 200 Gb/s", text,
                      Bps, err);
}

int s4d_parse_time(const char *text, double *t_s, struct s4d_error *err)
{
    return parse_unit("a time", times, "write 2 us or 500 ns", text, t_s, err);
}

int s4d_parse_flops(const char *text, double *flops_per_s, struct s4d_error *err)
{
    return parse_unit("a rate", rates, "write 312 TFLOP/s", text, flops_per_s, err);
}

int s4d_parse_bytes(const char *text, double *bytes, struct s4d_error *err)
{
    return parse_unit("a size", sizes, "write 40 GB (decimal) or 16 GiB (binary)", text, bytes,
                      err);
}

/* nccl-tests (src/common.cu, parsesize) takes both cases of the letter, all binary. */
int s4d_parse_size(const char *text, int64_t *bytes, struct s4d_error *err)
{
    size_t n = strspn(text, "0123456789");
    static const char letters[] = "KMGkmg";
    const char *letter = n > 0 && text[n] ? strchr(letters, text[n]) : NULL;
    int shift = letter ? 10 * ((int)(letter - letters) % 3 + 1) : 0;
    bool whole = n > 0 && text[n + (letter != NULL)] == '\0' && n <= 19;
    uint64_t v = whole ? strtoull(text, NULL, 10) : 0; /* 19 digits fit 64 bits */
    if (whole && v <= ((uint64_t)INT64_MAX >> shift)) {
        *bytes = (int64_t)(v << shift);
        return 0;
    }
    s4d_fail(err, S4D_EXIT_DATA, "", "expected bytes, plain or with K, M or G (binary), got %s",
             s4d_quote(text).text);
    return s4d_hint(err, "write 8, 64K, 32M or 1G");
}

/* For the eye; the record has all digits. */
static const char *format_scaled(double value, double step, const char *const *names, int n,
                                 char *text, int size)
{
    double v = fabs(value);
    int i = 0;
    for (; i < n - 1 && v >= step; i++)
        v /= step;
    int decimals = v == floor(v) && i == 0 ? 0 : v < 10 ? 2 : 1;
    snprintf(text, (size_t)size, "%.*f %s", decimals, value < 0 ? -v : v, names[i]);
    return text;
}

const char *s4d_format_bytes(double bytes, char *text, int size)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    return format_scaled(bytes, 1024, names, 6, text, size);
}

const char *s4d_format_bandwidth(double Bps, char *text, int size)
{
    static const char *const names[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
    return format_scaled(Bps, 1000, names, 6, text, size);
}

const char *s4d_format_flops(double flops_per_s, char *text, int size)
{
    static const char *const names[] = {"FLOP/s",  "kFLOP/s", "MFLOP/s", "GFLOP/s",
                                        "TFLOP/s", "PFLOP/s", "EFLOP/s"};
    return format_scaled(flops_per_s, 1000, names, 7, text, size);
}

const char *s4d_format_time(double t_s, char *text, int size)
{
    double v = fabs(t_s);
    if (v == 0 || !isfinite(v) || v >= 1)
        snprintf(text, (size_t)size, "%.3f s", t_s);
    else if (v >= 1e-3)
        snprintf(text, (size_t)size, "%.2f ms", t_s * 1e3);
    else if (v >= 1e-6)
        snprintf(text, (size_t)size, "%.2f us", t_s * 1e6);
    else
        snprintf(text, (size_t)size, "%.2f ns", t_s * 1e9);
    return text;
}
