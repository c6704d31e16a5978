/* SPDX-License-Identifier: Apache-2.0 */
/* Which machines may be compared night by night: a record's host_class. */
#ifndef S4D_REAL_HOST_CLASS_H
#define S4D_REAL_HOST_CLASS_H

/* `given` (--host-class; NULL: SCALE4D_HOST_CLASS, where it is set), else what this host looks
 * like: the model of its GPU (backend "cuda") or processor, `devices` of a node, its name without
 * digits ("NVIDIA H100 80GB HBM3 x8 n" of n017.cluster.org). A name that is a container's number
 * says nothing and is left out. The caller frees it. */
char *s4d_host_class(const char *given, const char *backend, int devices, const char *host);

/* The processor's model name as /proc/cpuinfo spells it, or its architecture; the caller frees it.
 */
char *s4d_processor_name(void);

/* "n" of "n017.cluster.org"; "" of twelve hexadecimal digits (a container). In place. */
char *s4d_host_without_digits(char *host);

#endif
