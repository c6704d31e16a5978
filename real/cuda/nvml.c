/* SPDX-License-Identifier: Apache-2.0 */
#include "real/cuda/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

/* As nvml.h declares them, of which no other file is needed. Results are ints, 0 success. */
struct violation {
    unsigned long long reference_us, time_ns;
};
enum { SM = 1, MEMORY = 2, UNCORRECTED = 1, SINCE_DRIVER = 0, EVER = 1, POWER = 0, THERMAL = 1 };
struct nvml {
    int (*init)(void);
    int (*driver)(char *text, unsigned size);
    int (*device)(const char *pci, void **device);
    int (*uuid)(void *device, char *text, unsigned size);
    int (*serial)(void *device, char *text, unsigned size);
    int (*clock)(void *device, int kind, unsigned *MHz);
    int (*max_clock)(void *device, int kind, unsigned *MHz);
    int (*throttle)(void *device, unsigned long long *reasons);
    int (*violation)(void *device, int policy, struct violation *violation);
    int (*power_limit)(void *device, unsigned *mW);
    int (*power)(void *device, unsigned *mW);
    int (*temperature)(void *device, int sensor, unsigned *C);
    int (*ecc)(void *device, int kind, int counter, unsigned long long *errors);
    int (*persistence)(void *device, int *on);
    int (*mig)(void *device, unsigned *now, unsigned *pending);
};

static const struct {
    const char *name;
    size_t at; /* in struct nvml */
} calls[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init)},
    {"nvmlSystemGetDriverVersion", offsetof(struct nvml, driver)},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct nvml, device)},
    {"nvmlDeviceGetUUID", offsetof(struct nvml, uuid)},
    {"nvmlDeviceGetSerial", offsetof(struct nvml, serial)},
    {"nvmlDeviceGetClockInfo", offsetof(struct nvml, clock)},
    {"nvmlDeviceGetMaxClockInfo", offsetof(struct nvml, max_clock)},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct nvml, throttle)},
    {"nvmlDeviceGetViolationStatus", offsetof(struct nvml, violation)},
    {"nvmlDeviceGetEnforcedPowerLimit", offsetof(struct nvml, power_limit)},
    {"nvmlDeviceGetPowerUsage", offsetof(struct nvml, power)},
    {"nvmlDeviceGetTemperature", offsetof(struct nvml, temperature)},
    {"nvmlDeviceGetTotalEccErrors", offsetof(struct nvml, ecc)},
    {"nvmlDeviceGetPersistenceMode", offsetof(struct nvml, persistence)},
    {"nvmlDeviceGetMigMode", offsetof(struct nvml, mig)},
};

/* Kept until the process ends, as the library recommends. NULL: it is not here, or does not start.
 */
static const struct nvml *load(void)
{
    static struct nvml n;
    static bool asked, good;
    if (asked)
        return good ? &n : NULL;
    asked = true;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        *(void **)((char *)&n + calls[i].at) = dlsym(library, calls[i].name);
    good = n.init && n.device && n.init() == 0;
    return good ? &n : NULL;
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static void add_number(json_t *state, const char *key, int rc, double value)
{
    if (rc == 0)
        set(state, key, json_real(value));
}

/* The bits nvmlClocksThrottleReason*. */
static json_t *reasons_of(unsigned long long bits)
{
    static const char *const names[] = {
        "idle",    "application-clocks", "power-cap",   "hardware-slowdown", "sync-boost",
        "thermal", "hardware-thermal",   "power-brake", "display-clocks"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bits >> i & 1)
            json_array_append_new(list, json_string(names[i]));
    if (bits >> (sizeof names / sizeof *names))
        json_array_append_new(list, json_string("other"));
    return list;
}

static void add_constant(const struct nvml *n, void *d, json_t *state)
{
    char text[128] = "";
    unsigned value = 0, pending;
    int on = 0, rc;
    if (n->uuid && n->uuid(d, text, sizeof text) == 0)
        set(state, "uuid", json_string(text));
    if (n->serial && n->serial(d, text, sizeof text) == 0)
        set(state, "serial", json_string(text));
    if (n->driver && n->driver(text, sizeof text) == 0)
        set(state, "driver", json_string(text));
    if (n->persistence && n->persistence(d, &on) == 0)
        set(state, "persistence", json_boolean(on));
    if (n->mig && n->mig(d, &value, &pending) == 0)
        set(state, "mig", json_boolean(value));
    if (n->max_clock) {
        rc = n->max_clock(d, SM, &value);
        add_number(state, "sm_clock_max_Hz", rc, 1e6 * value);
        rc = n->max_clock(d, MEMORY, &value);
        add_number(state, "memory_clock_max_Hz", rc, 1e6 * value);
    }
    if (n->power_limit) {
        rc = n->power_limit(d, &value);
        add_number(state, "power_limit_W", rc, 1e-3 * value);
    }
}

static void add_counters(const struct nvml *n, void *d, json_t *now)
{
    static const struct {
        const char *key;
        int policy;
    } held[] = {{"throttled_power_s", POWER}, {"throttled_thermal_s", THERMAL}};
    static const struct {
        const char *key;
        int counter;
    } errors[] = {{"ecc_uncorrected", SINCE_DRIVER}, {"ecc_uncorrected_ever", EVER}};
    for (int i = 0; i < 2 && n->violation; i++) {
        struct violation v = {0, 0};
        int rc = n->violation(d, held[i].policy, &v);
        add_number(now, held[i].key, rc, 1e-9 * (double)v.time_ns);
    }
    for (int i = 0; i < 2 && n->ecc; i++) {
        unsigned long long count = 0;
        if (n->ecc(d, UNCORRECTED, errors[i].counter, &count) == 0)
            set(now, errors[i].key, json_integer((json_int_t)count));
    }
}

static void add_moment(const struct nvml *n, void *d, json_t *now)
{
    unsigned value = 0;
    unsigned long long bits = 0;
    int rc;
    if (n->clock) {
        rc = n->clock(d, SM, &value);
        add_number(now, "sm_clock_Hz", rc, 1e6 * value);
        rc = n->clock(d, MEMORY, &value);
        add_number(now, "memory_clock_Hz", rc, 1e6 * value);
    }
    if (n->power) {
        rc = n->power(d, &value);
        add_number(now, "power_W", rc, 1e-3 * value);
    }
    if (n->temperature) {
        rc = n->temperature(d, 0, &value);
        add_number(now, "temperature_C", rc, value);
    }
    if (n->throttle && n->throttle(d, &bits) == 0)
        set(now, "throttle", reasons_of(bits));
    add_counters(n, d, now);
}

void s4d_nvml_add(json_t *state, const char *pci)
{
    const struct nvml *n = load();
    void *device = NULL;
    if (!n || n->device(pci, &device) != 0)
        return;
    json_t *now = json_object();
    add_constant(n, device, state);
    add_moment(n, device, now);
    if (json_object_size(now) > 0)
        set(state, "now", now);
    else
        json_decref(now);
}
