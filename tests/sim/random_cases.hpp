// Random machines and steps for property tests: anything that problems() accepts, seeded.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "core/step_plan.hpp"
#include "sim/hardware/machine.hpp"
#include "tests/sim/machines.hpp"

namespace dculab::sim::test {

constexpr int kCases = 400;
constexpr double kRounding = 1e-9;  // relative, of prices

class RandomCases {
 public:
  explicit RandomCases(unsigned seed) : random_(seed) {}

  [[nodiscard]] int integer(int lowest, int highest) {
    return std::uniform_int_distribution<int>(lowest, highest)(random_);
  }
  [[nodiscard]] double real(double lowest, double highest) {
    return std::uniform_real_distribution<double>(lowest, highest)(random_);
  }
  [[nodiscard]] double magnitude(double lowest, double highest) {
    return std::exp(real(std::log(lowest), std::log(highest)));
  }

  [[nodiscard]] Machine machine() {
    Machine machine;
    machine.name = "random";
    machine.kind = integer(0, 1) == 0 ? lower::DeviceKind::gpu : lower::DeviceKind::cpu;
    machine.compute_units = integer(1, machine.kind == lower::DeviceKind::gpu ? 200 : 32);
    machine.clock = Hertz(magnitude(5e8, 5e9));
    const FlopsPerSecond f32(magnitude(1e10, 1e14));
    machine.peaks = {{Dtype::f32, {f32, {}}}};
    if (integer(0, 1) == 0) machine.peaks[Dtype::f16] = {f32 * real(1, 4), {}};
    if (integer(0, 2) == 0) machine.peaks[Dtype::f16] = {f32 * real(1, 4), f32 * real(4, 30)};
    if (integer(0, 2) == 0) machine.peaks[Dtype::bf16] = {f32 * real(0.5, 2), f32 * real(1, 30)};
    if (integer(0, 3) == 0) machine.peaks[Dtype::fp8_e4m3] = {f32, f32 * real(4, 60)};
    add_levels(machine);
    machine.waves.wave_size = integer(0, 1) == 0 ? 32 : 64;
    const bool nvidia = machine.kind == lower::DeviceKind::gpu && machine.waves.wave_size == 32;
    if (nvidia) machine.compute_capability = integer(0, 1) == 0 ? "8.0" : "9.0";
    machine.waves.lds_per_unit = integer(16, 200) * kKiB;
    machine.overheads = {Seconds(magnitude(1e-7, 1e-5)), Seconds(magnitude(1e-6, 1e-3)), Seconds(magnitude(1e-8, 1e-5)),
                         Seconds(magnitude(1e-9, 1e-6))};
    machine.stack.reached.matmul_compute = real(0.05, 1);
    machine.stack.reached.attention_compute = real(0.05, 1);
    machine.stack.reached.elementwise_compute = real(0.05, 1);
    machine.stack.reached.conversion_compute = real(0.05, 1);
    machine.sustained.dram_bandwidth = real(0.3, 1);
    machine.sustained.cache_bandwidth = real(0.3, 1);
    machine.stack.reached.overlap = integer(0, 3) == 0 ? 1 : real(0.05, 1);
    machine.stack.reached.matmul_overlap = machine.stack.reached.overlap;
    machine.stack.reached.block_lookup = Seconds(magnitude(1e-10, 1e-7));
    return machine;
  }

  [[nodiscard]] ModelShape model() {
    ModelShape model;
    model.kinds[0].gqa().heads.head_dim = 16 << integer(0, 3);
    model.kinds[0].gqa().heads.num_key_value_heads = 1 << integer(0, 3);
    model.kinds[0].gqa().heads.num_attention_heads = model.kinds[0].gqa().heads.num_key_value_heads << integer(0, 3);
    model.hidden_size = integer(1, 64) * 64;
    model.kinds[0].mlp.intermediate_size = integer(1, 128) * 64;
    model.layers.assign(integer(1, 40), 0);
    model.vocab_size = integer(100, 100000);
    model.max_position_embeddings = 1 << 20;
    model.kinds[0].mlp.kind = integer(0, 1) == 0 ? MlpKind::gated : MlpKind::plain;
    return model;
  }

  [[nodiscard]] EngineOptions options() {
    static constexpr std::array kWeights{Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::int8, Dtype::int4};
    static constexpr std::array kCaches{Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3};
    static constexpr std::array kActivations{Dtype::f32, Dtype::f16, Dtype::bf16};
    EngineOptions options;
    options.block_size = 1 << integer(0, 8);
    options.weights.dtype = kWeights[static_cast<std::size_t>(integer(0, 4))];
    options.weights.group_size = options.weights.dtype == Dtype::int4 ? 128 : 0;
    options.kv_cache_dtype = kCaches[static_cast<std::size_t>(integer(0, 3))];
    options.activation_dtype = kActivations[static_cast<std::size_t>(integer(0, 2))];
    options.attention_split.partition_tokens = integer(0, 2) == 0 ? 0 : 256 << integer(0, 3);
    options.attention_split.query_heads_per_workgroup = integer(0, 3);
    return options;
  }

  // Prefills, chunks and decodes of different lengths.
  [[nodiscard]] Batch batch() {
    Batch batch;
    const int prefills = integer(0, 2);
    const int decodes = integer(prefills == 0 ? 1 : 0, 40);
    for (int index = 0; index < prefills; ++index)
      batch.sequences.push_back({index, Phase::prefill, integer(0, 1) * integer(0, 2000), integer(1, 1500), true});
    for (int index = 0; index < decodes; ++index)
      batch.sequences.push_back({prefills + index, Phase::decode, integer(0, 8000), 1, true});
    return batch;
  }

 private:
  void add_levels(Machine& machine) {
    const int caches = integer(1, 3);
    Bytes size(magnitude(8e3, 1e5));
    BytesPerSecond bandwidth(magnitude(1e11, 3e13));
    Seconds latency(magnitude(1e-9, 1e-7));
    for (int index = 0; index <= caches; ++index) {
      const bool dram = index == caches;
      const Scope scope = !dram && (index == 0 || integer(0, 2) == 0) ? Scope::compute_unit : Scope::device;
      const double alone = integer(0, 1) == 0 ? 0 : real(0.05, 1);
      const double outstanding = integer(0, 1) == 0 ? 0 : integer(4, 100);
      const char* names[] = {"L1", "L2", "L3"};
      machine.memory.push_back({dram ? "DRAM" : names[index], scope, dram ? 64 * kGiB : size,
                                Bytes(integer(0, 1) == 0 ? 64 : 128), bandwidth, latency, outstanding,
                                alone * bandwidth});
      size *= magnitude(4, 100);
      bandwidth *= real(0.1, 0.9);
      latency *= real(1, 6);
    }
  }

  std::mt19937 random_;
};

}  // namespace dculab::sim::test
