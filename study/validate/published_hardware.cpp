#include "study/validate/published_hardware.hpp"

#include <string>

#include "core/error.hpp"
#include "core/letter_case.hpp"
#include "sim/hardware/device_link.hpp"
#include "study/validate/published_weights.hpp"

namespace dculab::study {
namespace {

using config::PointKind;
using config::PublishedPoint;

constexpr double kGiga = 1e9;

[[nodiscard]] Bytes needed_bytes(const PublishedPoint& point) {
  if (!point.bytes) throw InputError("column m is missing: bytes");
  return Bytes(static_cast<double>(*point.bytes));
}

void require_link(const PublishedPoint& point, const sim::Machine& machine) {
  if (!sim::link_among(machine, point.devices))
    throw InputError("the file of " + machine.name + " has no link between devices");
}

// A point without bytes copies as many as DRAM holds, so that the launch takes none of the time.
[[nodiscard]] sim::MachineProbe copy_probe(const PublishedPoint& point, const sim::Machine& machine) {
  sim::MachineProbe probe{.kind = sim::ProbeKind::copy, .bytes = machine.dram().size, .threads = point.n};
  if (point.bytes) probe.bytes = needed_bytes(point);
  if (point.devices == 1) return probe;
  require_link(point, machine);
  probe.kind = sim::ProbeKind::send;
  probe.devices = point.devices;
  return probe;
}

// FLOP/s are of F32 unless the row says otherwise.
[[nodiscard]] sim::MachineProbe peak_probe(const PublishedPoint& point) {
  if (point.weights.empty() && point.unit != "FLOP/s")
    throw InputError("column weights is missing: the format that is multiplied");
  const Dtype dtype = point.weights.empty() ? Dtype::f32 : published_weights(point.weights).format.dtype;
  if (bits(dtype) < 8) throw InputError("no machine states what it multiplies in " + point.weights);
  return {.kind = sim::ProbeKind::arithmetic, .dtype = dtype};
}

[[nodiscard]] sim::MachineProbe probe_of(const PublishedPoint& point, const sim::Machine& machine) {
  switch (point.kind) {
    case PointKind::copy_bandwidth:
      return copy_probe(point, machine);
    case PointKind::cache_bandwidth:
      return {.kind = sim::ProbeKind::cache_read, .bytes = needed_bytes(point)};
    case PointKind::cache_latency:
      return {.kind = sim::ProbeKind::cache_chase, .bytes = needed_bytes(point)};
    case PointKind::launch_overhead:
      if (lower_case(point.notes).find("host wall time") != std::string::npos)
        throw InputError("the host's time of a synchronised call is not predicted");
      return {.kind = sim::ProbeKind::copy, .bytes = point.bytes ? needed_bytes(point) : Bytes{}};
    default:
      return peak_probe(point);
  }
}

}  // namespace

sim::MeasuredRun hardware_run(const PublishedPoint& point, const sim::Machine& machine) {
  sim::MeasuredRun measured_run;
  measured_run.timed = sim::Timed::kernel;
  measured_run.probe = probe_of(point, machine);
  if (point.unit == "GB/s") measured_run.amount = measured_run.probe->bytes.value() / kGiga;
  if (point.kind == PointKind::peak_rate) measured_run.amount = 1;
  return measured_run;
}

sim::MeasuredRun all_reduce_run(const PublishedPoint& point, const sim::Machine& machine) {
  if (point.devices < 2) throw InputError("an all_reduce is of at least 2 devices");
  require_link(point, machine);
  Op op;
  op.kind = OpKind::all_reduce;
  op.name = name(op.kind);
  op.devices = point.devices;
  op.add({OperandRole::output, needed_bytes(point), {}});
  StepPlan plan;
  plan.ops.push_back(op);
  return sim::kernel_run(std::move(plan));
}

}  // namespace dculab::study
