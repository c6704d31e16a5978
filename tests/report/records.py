# SPDX-License-Identifier: Apache-2.0
"""records.py NIGHTS SERIES: records of so many nights and series, with noise from a fixed seed.

Series 0 loses 3 % over the last 12 nights, as z takes longer; 1 has no record of the last two
nights; 2 loses 6 % in the last; 3 gains 4 % over the last third; 4 has a name that is HTML; 5 is
simulated, of what series 0 measures."""
import datetime
import json
import random
import sys

nights, series = int(sys.argv[1]), int(sys.argv[2])
last = datetime.date(2026, 11, 30)
random.seed(5)
MODELS = [("gpt-5b", 64, "2x2x4x4", 2.4e18, 0.9), ("gpt-10b", 128, "2x4x4x4", 9e18, 1.4),
          ("gpt-20b", 256, "4x4x4x4", 3e19, 2.1), ("llama-8b", 32, "1x2x4x4", 1.1e18, 0.7),
          ("<script>document.title='no'</script><b>gpt&\"'", 512, "4x4x8x4", 1.6e20, 3.2)]
HOSTS = ["NVIDIA H100 80GB HBM3 x8 n", "AMD MI250X x8 <img src=x onerror=alert(1)>", "NVIDIA A100-SXM4-80GB x4 nid"]


def record(s, day, back, environment, commit):
    name, gpus, grid, flops, base = MODELS[s % 5]
    t, z = base, 0.12 * base
    if s == 0 and back < 12:
        t, z = base * 1.031, 0.12 * base * 1.25
    if s == 2 and back == 0:
        t = base * 1.065
    if s == 3 and back < nights // 3:
        t = base / 1.04
    night = random.gauss(1, 0.002)
    samples = [t * night * random.gauss(1, 0.006) for _ in range(5)]
    median = sorted(samples)[2]
    r = {"kind": "train", "host_class": HOSTS[s // 5 % 3], "backend": "cuda",
         "workload": {"name": name, "hash": "%x" % s}, "gpus": gpus, "grid": grid, "global_batch": 1024,
         "recompute": "full", "precision": ["bf16", "fp16", "f32", "tf32"][s // 15 % 4], "seed": s // 60,
         "iteration_time_s": median, "samples_s": samples, "flops_formula": flops,
         "flops_per_s": flops / median, "memory_peak_bytes": 61234567890,
         "exposed_s": {"compute": median - z - 0.06, "x": 0.02, "y": 0.02, "z": z * random.gauss(1, 0.01),
                       "data": 0.01, "other": 0.01},
         "busbw_Bps": {"z-gather": 2.1e11 * 0.12 * base / z * random.gauss(1, 0.01)},
         "slowest_rank": random.randrange(gpus), "completed": 6, "interrupted": False}
    if s == 5:
        r = {"kind": "simulate", "machine": {"name": "perlmutter", "hash": "ab"}, "model_version": "2",
             "workload": {"name": "gpt-5b", "hash": "0"}, "gpus": 64, "grid": "2x2x4x4", "global_batch": 1024,
             "iteration_time_s": 0.86, "samples_s": [0.86], "flops_formula": 2.4e18, "flops_per_s": 2.4e18 / 0.86,
             "memory_peak_bytes": 61234567890}
    r["provenance"] = {"tool": "scale4d", "version": "0.1.0", "commit": "%07x" % commit, "host": "n%03d" % s,
                       "time": "%sT02:%02d:11Z" % (day, s % 60), "environment": environment}
    return r


for s in range(series):
    environment, commit = {"NCCL_ALGO": "Ring"}, 0xABC0000
    for n in range(nights):
        back = nights - 1 - n
        if random.random() < 0.15:
            commit += random.randrange(1, 99999)
        if s == 0 and back == 12:
            environment = {"NCCL_ALGO": "Tree", "NCCL_NOTE": "<i>&" + "/opt/nccl/lib" * 30}
        if s == 1 and back < 2 or s != 5 and back > 2 and random.random() < 0.02:
            continue
        print(json.dumps(record(s, last - datetime.timedelta(days=back), back, environment, commit)))
