/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a series differ in their numbers and in little else. So a record is taken apart: its
 * text with a mark in place of every number, and the numbers. The marks say how a number was
 * written, so that the same bytes come back. The text is deflated with that of the series' first
 * record as dictionary, the numbers are kept as what differs from that record's.
 *
 * Of valid JSON only: there no control character stands for itself, which makes them marks. */
#ifndef S4D_PLOTS_TRACK_PACK_H
#define S4D_PLOTS_TRACK_PACK_H

#include <stdbool.h>
#include <stddef.h>

enum { S4D_RECORD_MAX = 4 * 1024 * 1024 }; /* bytes of a record */

struct s4d_packed {
    char *text; /* '\0' behind its n bytes */
    size_t n;
    double *number; /* in the text's order */
    int numbers, cap;
};
/* Takes n bytes of valid JSON apart. */
void s4d_pack(struct s4d_packed *p, const char *json, size_t n);
void s4d_packed_free(struct s4d_packed *p);
/* Puts it together: fresh memory with '\0' behind *n bytes; NULL where text and numbers do not
 * belong together. */
char *s4d_unpack(const struct s4d_packed *p, size_t *n);
/* The same with 0, 1, 2, ... in the place of the numbers: a reader of JSON then says where a number
 * is. */
char *s4d_pack_ordinals(const struct s4d_packed *p);
/* Keys, brackets and where numbers stand, without other texts: two records of the same shape have
 * the same number in the same place. Fresh memory. */
char *s4d_pack_shape(const struct s4d_packed *p);

/* The numbers as bytes: of each, four bits, then those bytes in which it differs from the
 * reference's. Four bits of 0 to 8: so many, from the lowest on; of 9 to 13: one to five, from the
 * fourth on, as in integers and in 32-bit reals. Fresh memory of *size bytes. */
unsigned char *s4d_numbers_encode(const double *number, const double *reference, int n,
                                  size_t *size);
/* false: these bytes are not n numbers. */
bool s4d_numbers_decode(const unsigned char *bytes, size_t size, const double *reference, int n,
                        double *number);

/* zlib's deflate without header, dictionary first. It is a state that is used again and again: NULL
 * at first, freed with s4d_deflate_free. Fresh memory. */
struct s4d_deflater;
unsigned char *s4d_deflate(struct s4d_deflater **state, const char *dictionary, size_t n_dictionary,
                           const char *text, size_t n, size_t *size);
void s4d_deflate_free(struct s4d_deflater *state);
/* Fresh memory with '\0' behind *n bytes; NULL: damaged, or more than S4D_RECORD_MAX. */
char *s4d_inflate(const char *dictionary, size_t n_dictionary, const unsigned char *bytes,
                  size_t size, size_t *n);

#endif
