// A machine file that needs no measuring.
#pragma once

namespace dculab::cli::test {

// Faster than what two threads of any CPU reach, so that no honest step is refused.
inline constexpr const char* kGenerousCpu = R"(schema: dculab/machine/1
name: generous-cpu
kind: cpu
description: two threads of a CPU that no CPU beats
compute_units: {value: 2, kind: assumed, source: for this test}
clock: {value: 3 GHz, kind: assumed, source: for this test}
peaks:
  f32:
    vector: {value: 2 TFLOP/s, kind: assumed, source: for this test}
memory:
  - name: L2
    scope: compute_unit
    size: {value: 2 MiB, kind: assumed, source: for this test}
    line: {value: 64 B, kind: assumed, source: for this test}
    bandwidth: {value: 2000 GB/s, kind: assumed, source: for this test}
    latency: {value: 5 ns, kind: assumed, source: for this test}
  - name: DRAM
    scope: device
    size: {value: 64 GiB, kind: assumed, source: for this test}
    line: {value: 64 B, kind: assumed, source: for this test}
    bandwidth: {value: 1000 GB/s, kind: assumed, source: for this test}
    latency: {value: 100 ns, kind: assumed, source: for this test}
overheads:
  kernel_launch: {value: 5 us, kind: assumed, source: for this test}
)";

}  // namespace dculab::cli::test
