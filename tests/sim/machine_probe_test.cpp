// Benchmarks of the hardware alone, by hand on an MI50: 16 KiB, 4 MiB and DRAM of 6600, 1766 and 1024 GB/s.
#include "sim/study/machine_probe.hpp"

#include "sim/study/measured_run.hpp"
#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

const Machine& mi50() {
  static const Machine machine = [] {
    Machine made = test::mi50_like();
    made.peer_link = 32 * test::kGBs;
    made.peer_latency = Seconds(1e-6);
    made.collective_start = Seconds(10e-6);
    return made;
  }();
  return machine;
}

double time_of(MachineProbe probe) { return probe_time(mi50(), probe).value(); }

TEST_CASE("a copy takes its launch and what the slowest level takes") {
  CHECK(time_of({.kind = ProbeKind::copy}) == Approx(3e-6));
  CHECK(time_of({.kind = ProbeKind::copy, .bytes = Bytes(1024e6)}) == Approx(3e-6 + 1e-3 / 0.85).epsilon(1e-4));
  CHECK(time_of({.kind = ProbeKind::copy, .bytes = Bytes(176.6e3)}) == Approx(3e-6 + 1e-7 / 0.8));
  // 64 threads of 60 units have 30,720 bytes in flight, and wait 350 ns for them.
  CHECK(time_of({.kind = ProbeKind::copy, .bytes = Bytes(1e9), .threads = 64}) ==
        Approx(3e-6 + 1e9 / (30720 / 350e-9)).epsilon(1e-4));
  CHECK(probe_bound(mi50(), {.kind = ProbeKind::copy}) == "launch");
  CHECK(probe_bound(mi50(), {.kind = ProbeKind::copy, .bytes = Bytes(1e9)}) == "DRAM");
  CHECK(probe_floor(mi50(), {.kind = ProbeKind::copy, .bytes = 1 * kGiB}).value() ==
        Approx((1073741824.0 - (4 << 20) - 60 * 16384) / 1024e9));
}

TEST_CASE("a cache that keeps the bytes answers, the next one does what it does not") {
  CHECK(time_of({.kind = ProbeKind::cache_read, .bytes = Bytes(1024)}) == Approx(1024 / (0.8 * 6600e9)).epsilon(1e-4));
  CHECK(time_of({.kind = ProbeKind::cache_read, .bytes = 256 * kKiB}) == Approx(262144 / (0.8 * 1766e9)).epsilon(1e-3));
  CHECK(time_of({.kind = ProbeKind::cache_chase, .bytes = Bytes(1024)}) == Approx(75e-9).epsilon(1e-4));
  CHECK(time_of({.kind = ProbeKind::cache_chase, .bytes = 256 * kKiB}) == Approx(150e-9).epsilon(1e-3));
  // As many bytes as the L2 holds: half of them are still there.
  CHECK(time_of({.kind = ProbeKind::cache_chase, .bytes = 4 * kMiB}) == Approx(250e-9).epsilon(1e-3));
  CHECK(probe_bound(mi50(), {.kind = ProbeKind::cache_read, .bytes = 256 * kKiB}) == "L2");
}

TEST_CASE("links and arithmetic are the machine's") {
  CHECK(time_of({.kind = ProbeKind::send, .bytes = Bytes(32e6), .devices = 2}) == Approx(11e-6 + 1e-3 / 0.7));
  CHECK(1 / time_of({.kind = ProbeKind::arithmetic, .dtype = Dtype::int8}) == Approx(53.6e12));
  MeasuredRun measured_run;
  measured_run.probe = MachineProbe{.kind = ProbeKind::arithmetic, .dtype = Dtype::f16};
  measured_run.amount = 1;
  CHECK(measured_run.figure(price_run(mi50(), measured_run)) == Approx(26.8e12));
  CHECK(run_floor(mi50(), measured_run) == price_run(mi50(), measured_run));
  CHECK(run_bound(mi50(), measured_run) == "compute");
}

}  // namespace
}  // namespace dculab::sim
