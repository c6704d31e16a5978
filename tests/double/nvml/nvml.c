/* SPDX-License-Identifier: Apache-2.0 */
/* A double of NVIDIA's management library: the calls of real/cuda/nvml.h, as a library of its own,
 * build/tests/double/nvml/libnvidia-ml.so.1, which is found through LD_LIBRARY_PATH.
 *
 *   S4D_DOUBLE_NVML_REFUSE=name,name   these calls return "not supported" (3)
 *   S4D_DOUBLE_NVML_HOT=n              the n-th device (from 0) is held back by its temperature for
 *                                      1.5 s from each question to the next, and has a memory error
 *                                      more each time */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, DEVICES = 8 };

struct device {
    int number, asked;
};
static struct device devices[DEVICES];
static bool open_now;

static int enter(const char *call)
{
    const char *refused = getenv("S4D_DOUBLE_NVML_REFUSE");
    const char *at = refused ? strstr(refused, call) : NULL;
    size_t n = strlen(call);
    if (at && (at == refused || at[-1] == ',') && (at[n] == '\0' || at[n] == ','))
        return NOT_SUPPORTED;
    return open_now ? SUCCESS : UNINITIALIZED;
}
#define ENTER(call)                                                                                \
    do {                                                                                           \
        int rc_ = enter(#call);                                                                    \
        if (rc_)                                                                                   \
            return rc_;                                                                            \
    } while (0)

static bool is_hot(const struct device *d)
{
    const char *hot = getenv("S4D_DOUBLE_NVML_HOT");
    return hot && atoi(hot) == d->number;
}

static int put(char *text, unsigned size, const char *what, int number)
{
    return snprintf(text, size, "%s%d", what, number) < (int)size ? SUCCESS : 7 /* too small */;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    open_now = true;
    return enter("nvmlInit_v2");
}

int nvmlSystemGetDriverVersion(char *text, unsigned size);
int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    ENTER(nvmlSystemGetDriverVersion);
    return put(text, size, "575.57.0", 8);
}

/* "0000:03:00.0" is device 2 (tests/double/runtime.c). */
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct device **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct device **device)
{
    unsigned bus = 0;
    ENTER(nvmlDeviceGetHandleByPciBusId_v2);
    if (sscanf(pci, "0000:%x:00.0", &bus) != 1 || bus < 1 || bus > DEVICES)
        return NOT_FOUND;
    *device = &devices[bus - 1];
    (*device)->number = (int)bus - 1;
    return SUCCESS;
}

int nvmlDeviceGetUUID(struct device *d, char *text, unsigned size);
int nvmlDeviceGetUUID(struct device *d, char *text, unsigned size)
{
    ENTER(nvmlDeviceGetUUID);
    return put(text, size, "GPU-d0b1e000-0000-0000-0000-00000000000", d->number);
}

int nvmlDeviceGetSerial(struct device *d, char *text, unsigned size);
int nvmlDeviceGetSerial(struct device *d, char *text, unsigned size)
{
    ENTER(nvmlDeviceGetSerial);
    return put(text, size, "165002200000", d->number);
}

/* MHz; kind 1: of the multiprocessors, 2: of memory. */
int nvmlDeviceGetClockInfo(struct device *d, int kind, unsigned *MHz);
int nvmlDeviceGetClockInfo(struct device *d, int kind, unsigned *MHz)
{
    ENTER(nvmlDeviceGetClockInfo);
    if (kind != 1 && kind != 2)
        return INVALID;
    *MHz = kind == 2 ? 2619 : is_hot(d) ? 1200 : 1755;
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(struct device *d, int kind, unsigned *MHz);
int nvmlDeviceGetMaxClockInfo(struct device *d, int kind, unsigned *MHz)
{
    (void)d;
    ENTER(nvmlDeviceGetMaxClockInfo);
    *MHz = kind == 2 ? 2619 : 1980;
    return SUCCESS;
}

/* Idle is 1, the thermal slowdown of the driver 0x20. */
int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *d, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *d, unsigned long long *reasons)
{
    ENTER(nvmlDeviceGetCurrentClocksThrottleReasons);
    *reasons = is_hot(d) ? 0x20 : 1;
    return SUCCESS;
}

/* Policies: 0 power, 1 temperature. */
int nvmlDeviceGetViolationStatus(struct device *d, int policy, unsigned long long time[2]);
int nvmlDeviceGetViolationStatus(struct device *d, int policy, unsigned long long time[2])
{
    ENTER(nvmlDeviceGetViolationStatus);
    time[0] = 1;
    time[1] = 4000000000;
    if (policy == 1 && is_hot(d))
        time[1] += 1500000000ull * (unsigned long long)++d->asked;
    return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(struct device *d, unsigned *mW);
int nvmlDeviceGetEnforcedPowerLimit(struct device *d, unsigned *mW)
{
    (void)d;
    ENTER(nvmlDeviceGetEnforcedPowerLimit);
    *mW = 700000;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(struct device *d, unsigned *mW);
int nvmlDeviceGetPowerUsage(struct device *d, unsigned *mW)
{
    (void)d;
    ENTER(nvmlDeviceGetPowerUsage);
    *mW = 412345;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned *C);
int nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned *C)
{
    ENTER(nvmlDeviceGetTemperature);
    if (sensor != 0)
        return INVALID;
    *C = is_hot(d) ? 91 : 45;
    return SUCCESS;
}

/* Kind 1: not corrected; counter 0: since the driver was loaded, 1: ever. */
int nvmlDeviceGetTotalEccErrors(struct device *d, int kind, int counter,
                                unsigned long long *errors);
int nvmlDeviceGetTotalEccErrors(struct device *d, int kind, int counter, unsigned long long *errors)
{
    ENTER(nvmlDeviceGetTotalEccErrors);
    *errors = kind != 1 ? 999 : counter == 0 ? (is_hot(d) ? (unsigned)d->asked : 0) : 7;
    return SUCCESS;
}

int nvmlDeviceGetPersistenceMode(struct device *d, int *on);
int nvmlDeviceGetPersistenceMode(struct device *d, int *on)
{
    (void)d;
    ENTER(nvmlDeviceGetPersistenceMode);
    *on = 1;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(struct device *d, unsigned *now, unsigned *pending);
int nvmlDeviceGetMigMode(struct device *d, unsigned *now, unsigned *pending)
{
    (void)d;
    ENTER(nvmlDeviceGetMigMode);
    *now = *pending = 0;
    return SUCCESS;
}
