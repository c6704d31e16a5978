/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of a platform's child process. Private to sim/platform*. */
#ifndef S4D_SIM_PLATFORM_CHILD_H
#define S4D_SIM_PLATFORM_CHILD_H

#ifdef __cplusplus
extern "C" {
#endif

/* All numbers and texts go through the socket as they lie in memory; a text is its length, then its
 * bytes. First the child says int 0 and the platform (hosts: int, names; links: int, each a name, a
 * double, an int), or int 1 and a text, what SimGrid said. Then it answers pairs of ints with an
 * int, how many links (-1: no route), the links, a double. A socket that is closed ends it. */
enum { S4D_PLATFORM_LINKS = 4096 }; /* the most of a route */

/* Both: 0, or -1 when the other end is gone. */
int s4d_platform_send(int socket, const void *bytes, unsigned long n);
int s4d_platform_receive(int socket, void *bytes, unsigned long n);

/* Loads the platform and answers until the socket is closed. */
void s4d_platform_serve(int socket, const char *file, const char *hosts);

#ifdef __cplusplus
}
#endif
#endif
