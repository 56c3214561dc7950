#include "sim/compute/compute_time.hpp"

#include <algorithm>
#include <cmath>

#include "sim/compute/matmul_rate.hpp"
#include "sim/compute/peak.hpp"

namespace dculab::sim {
namespace {

using lower::Arithmetic;
using lower::Pipe;

// Of the vector units, weighted by 1 / what is reached of their rate. Those that are counted one by one take their
// turns.
[[nodiscard]] FlopCount vector_instructions(const Machine& machine, const Arithmetic& work, Dtype multiplied) {
  const Reached& reached = machine.stack.reached;
  const bool integers = multiplied == Dtype::int8 && work.integer_instructions > 0;
  const double conversions =
      integers
          ? work.integer_instructions
          : work.stored_values * (conversion_instructions(machine, work.stored, multiplied) + work.shaping_per_value);
  return FlopCount(conversions / reached.conversion_compute + work.softmax.value() / reached.attention_compute +
                   work.issued.value());
}

[[nodiscard]] Seconds fastest(const Arithmetic& work, const Peak& peak, double efficiency, Seconds vector) {
  const Seconds on_vector_units = work.multiply / (peak.vector * efficiency) + vector;
  if (!peak.matrix || !work.has_matrix_instructions) return on_vector_units;
  const double rows = std::ceil(work.rows / work.tile_rows) * work.tile_rows / work.rows;
  const Seconds on_matrix_cores = std::max(work.multiply * rows / (*peak.matrix * efficiency), vector);
  return std::min(on_vector_units, on_matrix_cores);
}

// Of what the SIMDs that have a wave could start, what their waves issue.
[[nodiscard]] double filled_share(const Machine& machine, const Arithmetic& work, const Parallelism& parallel) {
  if (work.waves_to_fill <= 1) return 1;
  const double waves = parallel.concurrent * parallel.waves_per_workgroup / parallel.active_units;
  return std::min(1.0, std::max(1.0, waves / machine.waves.simds_per_unit) / work.waves_to_fill);
}

}  // namespace

ComputeTime compute_time(const Machine& machine, const Op& op, const lower::Launch& launch,
                         const Parallelism& parallel) {
  const Arithmetic& work = launch.arithmetic;
  const double busy_share = parallel.busy_units() * filled_share(machine, work, parallel) / machine.compute_units;
  if (work.pipe == Pipe::elementwise) {
    const FlopsPerSecond peak = peak_of(machine, work);
    const Seconds beside = vector_instructions(machine, work, Dtype::f32) / vector_lanes(machine);
    const Seconds flops = op.flops / (peak * machine.stack.reached.elementwise_compute);
    return {(flops + beside) / busy_share, op.flops / peak};
  }
  const MultiplyFormat format = multiply_format(machine, work.multiplied_in);
  const Seconds floor = op.flops / peak_of(machine, work);
  if (const auto rate = launch.product ? matmul_rate(machine, *launch.product) : std::nullopt) {
    const FlopsPerSecond reached = std::min(*rate, highest_rate(format.peak)) * machine.stack.reached.matmul_compute;
    return {op.flops / (reached * busy_share), floor};
  }
  const double efficiency =
      work.pipe == Pipe::attention ? machine.stack.reached.attention_compute : machine.stack.reached.matmul_compute;
  const Seconds vector = vector_instructions(machine, work, format.dtype) / vector_lanes(machine) +
                         work.packed / (efficiency * packed_lanes(machine, format));
  const Seconds busy = fastest(work, format.peak, efficiency, vector) / busy_share;
  return {busy, work.issued > FlopCount() ? std::min(floor, busy) : floor};  // counted: maybe less than the FLOP
}

}  // namespace dculab::sim
