/* SPDX-License-Identifier: Apache-2.0 */
/* Strict numbers with units, in and out. Text must be a whole decimal number and a known unit,
 * nothing more; bits and bytes are never guessed. "25 GB/s", "25GB/s", "200 Gb/s" (= 25e9), "2 us",
 * "312 TFLOP/s", "40 GB", "16 GiB". Negative, hexadecimal, inf, nan, "1e9" and trailing garbage are
 * errors. Each returns 0, or -1 with a text that says what was expected (err->where left to the
 * caller). */
#ifndef S4D_SUPPORT_UNITS_H
#define S4D_SUPPORT_UNITS_H

#include <stdint.h>

#include "support/error.h"

int s4d_parse_int(const char *text, int64_t min, int64_t max, int64_t *value,
                  struct s4d_error *err);
int s4d_parse_number(const char *text, double min, double max, double *value,
                     struct s4d_error *err);
int s4d_parse_bandwidth(
    const char *text, double *Bps,
    struct s4d_error *err); /* B/s kB/s MB/s GB/s TB/s, b/s kb/s Mb/s Gb/s Tb/s */
int s4d_parse_time(const char *text, double *t_s, struct s4d_error *err); /* s ms us ns */
int s4d_parse_flops(
    const char *text, double *flops_per_s,
    struct s4d_error *err); /* FLOP/s kFLOP/s MFLOP/s GFLOP/s TFLOP/s PFLOP/s EFLOP/s */
int s4d_parse_bytes(
    const char *text, double *bytes,
    struct s4d_error *err); /* B kB MB GB TB KiB MiB GiB TiB; the unit is required */
int s4d_parse_size(const char *text, int64_t *bytes,
                   struct s4d_error *err); /* nccl-tests: plain, or K M G suffix, binary */

/* "1.50 GiB", "812.40 us", "25.0 GB/s", "151.3 TFLOP/s": into text of the given size, returned. */
const char *s4d_format_bytes(double bytes, char *text, int size);
const char *s4d_format_time(double t_s, char *text, int size);
const char *s4d_format_bandwidth(double Bps, char *text, int size);
const char *s4d_format_flops(double flops_per_s, char *text, int size);
/* The shortest plain decimal that reads back as the same double, of at most 40 decimals: "0.00001",
 * never "1e-5", below 1e40. */
const char *s4d_format_number(double value, char *text, int size);

#endif
