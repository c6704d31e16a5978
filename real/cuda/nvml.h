/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library, loaded when the program runs: libnvidia-ml.so.1 comes with the
 * driver, not with CUDA. What is asked, by the API reference of NVML
 * (docs.nvidia.com/deploy/nvml-api):
 *
 *   nvmlInit_v2 nvmlSystemGetDriverVersion nvmlDeviceGetHandleByPciBusId_v2
 *   nvmlDeviceGetUUID nvmlDeviceGetSerial nvmlDeviceGetClockInfo nvmlDeviceGetMaxClockInfo
 *   nvmlDeviceGetCurrentClocksThrottleReasons nvmlDeviceGetViolationStatus
 *   nvmlDeviceGetEnforcedPowerLimit nvmlDeviceGetPowerUsage nvmlDeviceGetTemperature
 *   nvmlDeviceGetTotalEccErrors nvmlDeviceGetPersistenceMode nvmlDeviceGetMigMode
 *
 * Nothing fails without it: what it does not tell is not said. */
#ifndef S4D_REAL_CUDA_NVML_H
#define S4D_REAL_CUDA_NVML_H

#include <jansson.h>

/* What it says of the GPU at this address of the bus, added to `state`: uuid, serial, driver,
 * persistence, mig, sm_clock_max_Hz, memory_clock_max_Hz, power_limit_W; and of this moment, in
 * "now": sm_clock_Hz, memory_clock_Hz, power_W, temperature_C, throttle (why clocks are below what
 * they could be), throttled_power_s and throttled_thermal_s (since the driver was loaded),
 * ecc_uncorrected (since then) and ecc_uncorrected_ever. A key whose query fails is absent. */
void s4d_nvml_add(json_t *state, const char *pci);

#endif
