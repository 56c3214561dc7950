#include "sim/compute/peak.hpp"

#include <algorithm>

namespace dculab::sim {
namespace {

[[nodiscard]] Dtype next_wider(Dtype dtype) {
  switch (dtype) {
    case Dtype::int2:
    case Dtype::int3:
    case Dtype::int4:
    case Dtype::int8:
    case Dtype::kivi2:
    case Dtype::kivi4:
    case Dtype::kvquant2:
    case Dtype::kvquant3:
    case Dtype::kvquant4:
    case Dtype::mxfp4:
    case Dtype::nf4:
    case Dtype::fp4:
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
      return Dtype::f16;
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f32:
      return Dtype::f32;
  }
  return Dtype::f32;
}

}  // namespace

FlopsPerSecond highest_rate(const Peak& peak) { return std::max(peak.vector, peak.matrix.value_or(peak.vector)); }

MultiplyFormat multiply_format(const Machine& machine, Dtype wanted) {
  for (Dtype dtype = wanted;; dtype = next_wider(dtype)) {
    const auto found = machine.peaks.find(dtype);
    if (found != machine.peaks.end()) return {dtype, found->second};
    if (dtype == Dtype::f32) return {dtype, {}};
  }
}

FlopsPerSecond peak_of(const Machine& machine, const lower::Arithmetic& work) {
  if (work.pipe == lower::Pipe::elementwise) return machine.peaks.at(Dtype::f32).vector;
  const Peak peak = multiply_format(machine, work.multiplied_in).peak;
  return work.has_matrix_instructions ? highest_rate(peak) : peak.vector;
}

FlopsPerSecond vector_lanes(const Machine& machine) { return machine.peaks.at(Dtype::f32).vector / 2.0; }

FlopsPerSecond packed_lanes(const Machine& machine, const MultiplyFormat& format) {
  return bits(format.dtype) == 16 ? format.peak.vector / 4.0 : vector_lanes(machine);
}

double conversion_instructions(const Machine& machine, Dtype stored, Dtype multiplied) {
  if (stored == multiplied) return 0;
  switch (stored) {
    case Dtype::f32:
    case Dtype::f16:
    case Dtype::bf16:
      return 1;
    case Dtype::int8:
      return 2;
    case Dtype::int2:
    case Dtype::int3:
    case Dtype::int4:
    case Dtype::kivi2:
    case Dtype::kivi4:
    case Dtype::mxfp4:
    case Dtype::nf4:
    case Dtype::fp4:
      return 3;
    case Dtype::kvquant2:
    case Dtype::kvquant3:
    case Dtype::kvquant4:
      return 11;
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
      return machine.peaks.contains(stored) ? 1 : 4;
  }
  return 0;
}

}  // namespace dculab::sim
