#!/usr/bin/env python3
"""Prints calm_and_rush.csv: five minutes of 0.4 requests a second, five of 2, five of 0.4 again; lengths are lognormal."""

import random

CALM, RUSH, SECONDS = 0.4, 2.0, 300

rng = random.Random(7)
time = 0.0
print("arrived_at,num_prefill_tokens,num_decode_tokens")
for phase, rate in enumerate((CALM, RUSH, CALM)):
    time = phase * SECONDS + rng.expovariate(rate)
    while time < (phase + 1) * SECONDS:
        prompt = min(2048, max(16, int(rng.lognormvariate(5.704, 0.9))))
        output = min(1024, max(8, int(rng.lognormvariate(5.011, 0.7))))
        print(f"{time:.3f},{prompt},{output}")
        time += rng.expovariate(rate)
