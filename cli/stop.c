/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char stopped[1024];
static pid_t us; /* simulating children inherit the handler */

static void stop(int signal_number)
{
    ssize_t written = getpid() == us ? write(STDERR_FILENO, stopped, strlen(stopped)) : 0;
    (void)written;
    _exit(128 + signal_number);
}

void s4d_stop_keeps(const char *file)
{
    snprintf(stopped, sizeof stopped,
             "\nscale4d: stopped. What is finished stays in %.600s\n"
             "  hint: the same command goes on from there\n",
             file);
    us = getpid();
    struct sigaction action = {.sa_handler = stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int s4d_stop_append(struct s4d_records *records, const char *file, json_t *record,
                    struct s4d_error *err)
{
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigprocmask(SIG_BLOCK, &stops, &before);
    int rc = s4d_records_append(records, file, record, err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}
