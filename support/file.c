/* SPDX-License-Identifier: Apache-2.0 */
/* Reading files with a bound, outputs that can be written, and listing folders of YAML files. */
#include "support/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/memory.h"
#include "support/random.h"
#include "support/replace.h"

static int read_open(FILE *f, const char *file, char **bytes, size_t *n, struct s4d_error *err)
{
    struct stat st;
    if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode))
        return s4d_fail(err, S4D_EXIT_DATA, file, "expected a file, found a folder");
    char *v = NULL;
    size_t size = 0, room = 0;
    do {
        room = room ? 2 * room : 16 * 1024;
        v = s4d_realloc(v, room + 1);
        size += fread(v + size, 1, room - size, f);
    } while (size == room && size <= S4D_FILE_MAX);
    *bytes = v;
    *n = size;
    v[size] = '\0';
    if (ferror(f))
        return s4d_fail(err, S4D_EXIT_DATA, file, "cannot read: %s", strerror(errno));
    if (size > S4D_FILE_MAX)
        return s4d_fail(err, S4D_EXIT_DATA, file, "expected at most %d MiB, found more",
                        S4D_FILE_MAX >> 20);
    return 0;
}

int s4d_file_read(const char *file, char **bytes, size_t *n, struct s4d_error *err)
{
    *bytes = NULL;
    *n = 0;
    FILE *f = fopen(file, "rb");
    if (!f)
        return s4d_fail(err, S4D_EXIT_DATA, file, "cannot open: %s", strerror(errno));
    int rc = read_open(f, file, bytes, n, err);
    fclose(f);
    if (rc) {
        free(*bytes);
        *bytes = NULL;
        *n = 0;
    }
    return rc;
}

/* Tried, because permissions do not say all: not for root, not of every file system. */
static int try_beside(const char *file, const char *target, struct s4d_error *err)
{
    char *beside = s4d_asprintf("%s.XXXXXX", target);
    int fd = mkstemp(beside), rc = 0;
    if (fd < 0)
        rc = s4d_fail(err, S4D_EXIT_OUTPUT, file, "no file can be written there: %s",
                      strerror(errno));
    else if (close(fd) || unlink(beside) || (access(file, F_OK) == 0 && access(file, W_OK)))
        rc = s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    free(beside);
    return rc;
}

int s4d_file_writable(const char *file, struct s4d_error *err)
{
    struct stat st;
    if (stat(file, &st) == 0 && S_ISDIR(st.st_mode))
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "expected a file to write, found a folder");
    char *target = s4d_link_target(file);
    int rc = 0;
    if (target && s4d_is_replaced(target))
        rc = try_beside(file, target, err);
    else if (!target || access(target, W_OK))
        rc = s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    free(target);
    return rc;
}

/* Its folder's and its own name. */
static void split_path(const char *file, char folder[PATH_MAX], const char **name)
{
    const char *slash = strrchr(file, '/');
    *name = slash ? slash + 1 : file;
    if (slash)
        snprintf(folder, PATH_MAX, "%.*s", (int)(slash - file) + 1, file);
    else
        snprintf(folder, PATH_MAX, ".");
}

/* Of files that are not there: one name in one folder, behind links. */
static bool same_name(const char *a, const char *b)
{
    struct stat sa, sb;
    char folder[PATH_MAX], *file[2] = {s4d_link_target(a), s4d_link_target(b)};
    const char *name[2] = {NULL, NULL};
    bool same = file[0] && file[1];
    if (same) {
        split_path(file[0], folder, &name[0]);
        same = stat(folder, &sa) == 0;
        split_path(file[1], folder, &name[1]);
        same = same && stat(folder, &sb) == 0 && strcmp(name[0], name[1]) == 0 &&
               sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
    }
    free(file[0]);
    free(file[1]);
    return same;
}

bool s4d_file_same(const char *a, const char *b)
{
    struct stat sa, sb;
    bool there = stat(a, &sa) == 0;
    if (there != (stat(b, &sb) == 0) || (there && !S_ISREG(sa.st_mode)))
        return false;
    return there ? sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino : same_name(a, b);
}

int s4d_outputs_check(const struct s4d_output *v, int n, struct s4d_error *err)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i && v[i].file; j++)
            if (v[j].file && s4d_file_same(v[i].file, v[j].file)) {
                s4d_fail(err, S4D_EXIT_USAGE, v[i].option, "'%s' is the file of %s, too", v[i].file,
                         v[j].option);
                return s4d_hint(err, "each would be written over the other");
            }
        if (v[i].file && s4d_file_writable(v[i].file, err))
            return -1;
    }
    return 0;
}

enum { BLOCKS = 256, BLOCK = 4096 };

int s4d_file_fingerprint(const char *file, uint64_t *fingerprint, struct s4d_error *err)
{
    unsigned char block[BLOCK];
    struct stat st;
    /* Non-blocking: a pipe without a writer is refused, not waited for. */
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (!f || fstat(fd, &st))
        goto failed;
    if (!S_ISREG(st.st_mode)) {
        fclose(f);
        return s4d_fail(err, S4D_EXIT_DATA, file, "expected a file, found %s",
                        S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
    }
    if (fseeko(f, 0, SEEK_END))
        goto failed;
    int64_t size = ftello(f), last = size > BLOCK ? size - BLOCK : 0;
    uint64_t hash = s4d_mix((uint64_t)size);
    for (int i = 0; i < BLOCKS; i++) {
        /* Up to BLOCKS * BLOCK bytes the blocks follow one another; beyond, they are apart. */
        int64_t at = size <= BLOCKS * BLOCK ? (int64_t)i * BLOCK
                                            : (int64_t)((double)last * i / (BLOCKS - 1));
        if (at > size)
            break;
        if (fseeko(f, at, SEEK_SET))
            goto failed;
        size_t n = fread(block, 1, BLOCK, f);
        if (ferror(f))
            goto failed;
        for (size_t k = 0; k < n; k++)
            hash = (hash ^ block[k]) * 0x100000001b3u; /* FNV-1a */
    }
    fclose(f);
    *fingerprint = hash;
    return 0;
failed:
    s4d_fail(err, S4D_EXIT_DATA, file, "cannot read: %s", strerror(errno));
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    return -1;
}

static bool has_yaml_ending(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".yaml") == 0;
}

static int by_byte(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int s4d_file_names(const char *folder, char ***names)
{
    char **v = NULL;
    int n = 0, cap = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || !has_yaml_ending(e->d_name))
            continue;
        char *name = s4d_strdup(e->d_name);
        name[strlen(name) - 5] = '\0';
        s4d_push(v, n, cap, name);
    }
    if (d)
        closedir(d);
    if (n > 1)
        qsort(v, (size_t)n, sizeof *v, by_byte);
    *names = v;
    return n;
}

void s4d_names_free(char **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

bool s4d_is_path(const char *name)
{
    return strchr(name, '/') != NULL || has_yaml_ending(name);
}

const char *s4d_data_folder(void)
{
    static char folder[PATH_MAX];
    if (folder[0])
        return folder;
    char program[PATH_MAX] = ""; /* "/usr/local/bin/scale4d" */
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    for (int i = 0; i < 2; i++) {
        char *slash = n > 0 ? strrchr(program, '/') : NULL;
        if (slash)
            *slash = '\0';
    }
    snprintf(folder, sizeof folder, "%.4000s/share/scale4d", program);
    if (access(folder, R_OK | X_OK) != 0)
        snprintf(folder, sizeof folder, "%s", S4D_DATA_DIR);
    return folder;
}
