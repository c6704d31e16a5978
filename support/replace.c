/* SPDX-License-Identifier: Apache-2.0 */
#include "support/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/memory.h"

enum { MOST_LINKS = 40 }; /* path_resolution(7) */
enum { LOOKS = 100, LOOK_NS = 10000000 };

static int cannot(const struct s4d_replacement *r, struct s4d_error *err)
{
    return s4d_fail(err, S4D_EXIT_OUTPUT, r->name, "cannot be written: %s",
                    errno ? strerror(errno) : "an earlier write failed");
}

/* Where a name lies in /proc, by whatever link (/dev/stdout, /dev/fd/63 of a shell's >(...)): a
 * link there names no file that could be another. NULL: it does not. Caller frees. */
static char *in_proc(const char *file)
{
    const char *slash = strrchr(file, '/');
    char *folder = slash ? s4d_asprintf("%.*s", (int)(slash - file) + 1, file) : s4d_strdup(".");
    char *real = realpath(folder, NULL), *found = NULL;
    if (real && strncmp(real, "/proc/", strlen("/proc/")) == 0)
        found = s4d_asprintf("%s/%s", real, slash ? slash + 1 : file);
    free(folder);
    free(real);
    return found;
}

char *s4d_link_target(const char *file)
{
    char *at = s4d_strdup(file), text[PATH_MAX];
    for (int i = 0; i < MOST_LINKS; i++) {
        char *proc = in_proc(at);
        if (proc) {
            free(at);
            return proc;
        }
        ssize_t n = readlink(at, text, sizeof text - 1);
        if (n < 0) /* no link, or nothing there */
            return at;
        text[n] = '\0';
        const char *slash = text[0] == '/' ? NULL : strrchr(at, '/');
        char *next =
            slash ? s4d_asprintf("%.*s/%s", (int)(slash - at), at, text) : s4d_strdup(text);
        free(at);
        at = next;
    }
    free(at);
    errno = ELOOP;
    return NULL;
}

bool s4d_is_replaced(const char *target)
{
    struct stat there;
    return stat(target, &there) != 0 ||
           (S_ISREG(there.st_mode) && strncmp(target, "/proc/", strlen("/proc/")) != 0);
}

/* Whoever holds the lock may have renamed the file since it was opened: then what we hold is the
 * result, and we open again. */
static bool is_named(int fd, const char *file)
{
    struct stat ours, named;
    return fstat(fd, &ours) == 0 && stat(file, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

static int open_partial(const struct s4d_replacement *r, struct s4d_error *err)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    for (int looks = 0;;) {
        int fd = open(r->partial, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
            return cannot(r, err);
        bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        bool busy = !locked && errno == EWOULDBLOCK; /* some file systems have no locks */
        if (!busy && is_named(fd, r->partial))
            return fd;
        close(fd);
        if (busy && looks++ == LOOKS)
            return s4d_fail(err, S4D_EXIT_OUTPUT, r->name, "another process is writing %s",
                            r->partial);
        if (busy)
            nanosleep(&look, NULL);
    }
}

static void release(struct s4d_replacement *r)
{
    free(r->name);
    free(r->file);
    free(r->partial);
    *r = (struct s4d_replacement){0};
}

/* -1: the target is none of our own descriptors. */
static int descriptor_of(const char *target)
{
    char folder[64];
    int n = snprintf(folder, sizeof folder, "/proc/%ld/fd/", (long)getpid());
    char *end;
    long fd = strncmp(target, folder, (size_t)n) == 0 ? strtol(target + n, &end, 10) : -1;
    return fd < 0 || fd > INT_MAX || end == target + n || *end ? -1 : (int)fd;
}

/* Opened again, a file would be written from its start, or its end, over what stdout writes there:
 * a descriptor of our own is copied, and shares its place in the file. */
static int open_target(const char *target, int flags)
{
    int own = descriptor_of(target);
    if (own < 0)
        return open(target, flags | O_APPEND | O_CLOEXEC, 0666);
    return own == STDOUT_FILENO && fflush(stdout) ? -1 : fcntl(own, F_DUPFD_CLOEXEC, 0);
}

int s4d_open_at_end(const char *file)
{
    struct stat there;
    char *target = s4d_link_target(file);
    bool other = target && stat(target, &there) == 0 && !S_ISREG(there.st_mode);
    int fd = target ? open_target(target, other ? O_WRONLY : O_RDWR | O_CREAT) : -1;
    int why = errno;
    free(target);
    errno = why;
    return fd;
}

static int open_itself(const struct s4d_replacement *r, struct s4d_error *err)
{
    int fd = open_target(r->file, O_WRONLY); /* a folder is refused here */
    return fd < 0 ? cannot(r, err) : fd;
}

static int open_beside(struct s4d_replacement *r, struct s4d_error *err)
{
    struct stat there;
    bool replaces = stat(r->file, &there) == 0;
    r->partial = s4d_asprintf("%s.partial", r->file);
    int fd = open_partial(r, err);
    if (fd >= 0 && replaces) /* not all file systems have permissions */
        (void)!fchmod(fd, there.st_mode & 0777);
    if (fd < 0 || ftruncate(fd, 0) == 0)
        return fd;
    cannot(r, err);
    close(fd);
    return -1;
}

int s4d_replace_open(struct s4d_replacement *r, const char *file, struct s4d_error *err)
{
    *r = (struct s4d_replacement){.name = s4d_strdup(file), .file = s4d_link_target(file)};
    int fd = -1;
    if (!r->file)
        s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    else
        fd = s4d_is_replaced(r->file) ? open_beside(r, err) : open_itself(r, err);
    if (fd >= 0 && (r->out = fdopen(fd, "w")) != NULL)
        return 0;
    if (fd >= 0) {
        cannot(r, err);
        close(fd);
    }
    release(r);
    return -1;
}

/* The folder's entry too, so that a power cut leaves the old file or the new one. */
static void sync_folder(const char *file)
{
    char *folder = s4d_strdup(file), *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd); /* some file systems know none of a folder; the file itself is on disk */
        close(fd);
    }
    free(folder);
}

int s4d_replace_close(struct s4d_replacement *r, int rc, struct s4d_error *err)
{
    if (!r->out)
        return rc;
    errno = 0;
    if ((ferror(r->out) || fflush(r->out)) && !rc)
        rc = cannot(r, err);
    if (!rc && r->partial && fsync(fileno(r->out)))
        rc = cannot(r, err);
    if (!rc && r->partial && rename(r->partial, r->file))
        rc = cannot(r, err);
    if (rc && r->partial)
        unlink(r->partial); /* before the lock goes with the descriptor */
    else if (r->partial)
        sync_folder(r->file);
    if (fclose(r->out) && !rc && !r->partial)
        rc = cannot(r, err);
    release(r);
    return rc;
}
