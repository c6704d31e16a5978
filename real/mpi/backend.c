/* SPDX-License-Identifier: Apache-2.0 */
/* Backends of libraries that are large, or that only some machines have, are loaded when they are
 * asked for: scale4d-NAME.so beside the program, above it, or where `make install` puts it. */
#include "real/mpi/backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern const struct s4d_backend s4d_backend_cuda __attribute__((weak)); /* in a test it is linked */

const char *const s4d_backend_names[S4D_BACKENDS + 1] = {"host", "cuda", NULL};

static char reason[1024];

static void *load(const char *file)
{
    static const char *const folders[] = {"", "../", "../lib/scale4d/"};
    char program[1024], path[1400];
    void *library = NULL;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    char *end = strrchr(program, '/');
    if (end)
        end[1] = '\0';
    reason[0] = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !library; i++) {
        snprintf(path, sizeof path, "%s%s%s", program, folders[i], file);
        if (access(path, F_OK) == 0 && !(library = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
            snprintf(reason, sizeof reason, "%s", dlerror());
    }
    if (!library && reason[0] == '\0')
        snprintf(reason, sizeof reason, "%s",
                 S4D_CUDA_LACKS[0] ? S4D_CUDA_LACKS : "there is no scale4d-cuda.so");
    return library;
}

static const struct s4d_backend *cuda(void)
{
    static struct s4d_backend absent = {.name = "cuda", .absent = reason};
    static const struct s4d_backend *row;
    if (!row && &s4d_backend_cuda != NULL)
        row = &s4d_backend_cuda;
    if (!row) {
        void *library = load("scale4d-cuda.so");
        row = library ? dlsym(library, "s4d_backend_cuda") : &absent;
    }
    return row;
}

const struct s4d_backend *s4d_backend_of(int number)
{
    return number == 0 ? &s4d_backend_host : cuda();
}
