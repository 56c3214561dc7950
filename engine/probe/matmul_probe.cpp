#include "engine/probe/matmul_probe.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <memory>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/packed_weights.hpp"
#include "kernels/number_format.hpp"
#include "kernels/quantized_matrix.hpp"

namespace dculab::engine {
namespace {

using kernels::MatmulArgs;
using kernels::WeightView;
using kernels::cpu::ThreadPool;

constexpr int kColumns = 2048;  // in-features
constexpr int kGroup = 128;     // of int4
constexpr std::array kRows{1, 2, 4, 8, 16, 64, 256};
constexpr Seconds kLongestSample{4e-3};
constexpr std::chrono::milliseconds kLongestProduct{100};  // more rows than a product of that time has are left out

struct Kernel {
  Dtype weights;
  ActivationMode activations;
};
constexpr std::array kKernels{Kernel{Dtype::f32, ActivationMode::exact},  Kernel{Dtype::f16, ActivationMode::exact},
                              Kernel{Dtype::bf16, ActivationMode::exact}, Kernel{Dtype::int8, ActivationMode::exact},
                              Kernel{Dtype::int8, ActivationMode::int8},  Kernel{Dtype::int4, ActivationMode::exact},
                              Kernel{Dtype::int4, ActivationMode::int8}};

// Half of the memory, so that activations and results find room beside the weights.
[[nodiscard]] int out_features(Dtype weights, Bytes memory) {
  constexpr int kStrip = kernels::cpu::PackedLayout::kStripRows;
  const Bytes strip = storage(weights, kStrip * kColumns);
  return kStrip * std::max(1, static_cast<int>(0.5 * memory / strip));
}

// A matrix with values that toggle as real ones do.
class Weights {
 public:
  Weights(Dtype dtype, int rows) {
    if (bits(dtype) >= 16)
      fill_floats(dtype, rows);
    else
      fill_integers(dtype, rows);
  }
  [[nodiscard]] const WeightView& view() const { return view_; }

 private:
  [[nodiscard]] unsigned random() {
    state_ = state_ * 1664525U + 1013904223U;
    return state_ >> 16;
  }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) {
    memory_.resize(bytes + 64);
    return memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64;
  }

  // In [1/64, 1/32): no denormals.
  void fill_floats(Dtype dtype, int rows) {
    const std::size_t values = static_cast<std::size_t>(rows) * kColumns;
    const std::size_t size = static_cast<std::size_t>(bits(dtype)) / 8;
    std::byte* const data = allocate(values * size);
    for (std::size_t i = 0; i < values; ++i) {
      const float value = (1.0F + static_cast<float>(random() % 1024U) / 1024.0F) / 64.0F;
      const std::uint16_t half = dtype == Dtype::f16 ? kernels::f16_from_f32(value) : kernels::bf16_from_f32(value);
      if (dtype == Dtype::f32)
        std::memcpy(data + i * size, &value, size);
      else
        std::memcpy(data + i * size, &half, size);
    }
    view_ = {data, dtype, rows};
  }

  void fill_integers(Dtype dtype, int rows) {
    kernels::QuantizedMatrix matrix;
    matrix.rows = rows, matrix.columns = kColumns, matrix.bits = bits(dtype);
    matrix.group_size = dtype == Dtype::int4 ? kGroup : kColumns;
    const unsigned levels = 1U << static_cast<unsigned>(matrix.bits);
    matrix.q.resize(static_cast<std::size_t>(rows) * kColumns);
    for (std::uint8_t& q : matrix.q) q = static_cast<std::uint8_t>(random() % levels);
    const std::size_t scales = static_cast<std::size_t>(rows) * static_cast<std::size_t>(matrix.groups());
    matrix.scales.assign(scales, 0x1p-8F);
    matrix.zeros.assign(scales, static_cast<std::uint8_t>(levels / 2));
    std::byte* const data = allocate(kernels::cpu::packed_bytes(rows, kColumns, matrix.bits, matrix.group_size));
    view_ = kernels::cpu::pack_weights(matrix, nullptr, data);
  }

  std::vector<std::byte> memory_;
  WeightView view_;
  unsigned state_ = 1;
};

// What one thread multiplies with: a team of its own that is itself alone, so that no fork and join is in the time.
class Product {
 public:
  Product(const Kernel& kernel, Bytes memory)
      : weights_(kernel.weights, out_features(kernel.weights, memory)),
        x_(static_cast<std::size_t>(kRows.back()) * kColumns),
        y_(static_cast<std::size_t>(kRows.back()) * static_cast<std::size_t>(weights_.view().rows)),
        activations_(kernel.activations) {
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i * 37 % 101) / 101.0F - 0.5F;
  }

  [[nodiscard]] FlopCount multiply(int rows, std::int64_t repeats) {
    MatmulArgs args;
    args.x = x_.data(), args.y = y_.data(), args.m = rows, args.k = kColumns;
    args.weights[0] = weights_.view();
    args.activations = activations_;
    for (std::int64_t i = 0; i < repeats; ++i) kernels::cpu::matmul(alone_, workspace_, args);
    return FlopCount(2.0 * rows * weights_.view().rows * kColumns * static_cast<double>(repeats));
  }

 private:
  ThreadPool alone_{1};
  kernels::cpu::Workspace workspace_;
  Weights weights_;
  std::vector<float> x_, y_;
  ActivationMode activations_;
};

// One kernel on all threads at once.
class KernelBench {
 public:
  KernelBench(ThreadPool& team, const Kernel& kernel, Bytes memory) : team_(team) {
    for (int thread = 0; thread < team.num_threads(); ++thread)
      products_.push_back(std::make_unique<Product>(kernel, memory));
  }

  [[nodiscard]] FlopsPerSecond rate(int rows, std::int64_t repeats) {
    const auto multiply = [&](int thread, std::int64_t times) {
      return products_[static_cast<std::size_t>(thread)]->multiply(rows, times);
    };
    team_.parallel_for(
        team_.num_threads(), [&](int thread, int) { (void)multiply(thread, 1); },
        kernels::cpu::Distribution::fixed);  // brings the weights into L2
    return sum_of_rates<FlopsPerSecond>(team_, [&](int thread) { return multiply(thread, repeats); });
  }

 private:
  ThreadPool& team_;
  std::vector<std::unique_ptr<Product>> products_;
};

}  // namespace

std::vector<MatmulMeasurement> measure_matmuls(ThreadPool& team, Bytes l2, const Effort& effort) {
  struct Case {
    KernelBench* bench;
    int rows;
    std::int64_t repeats;
    std::vector<FlopsPerSecond> rates;
  };
  std::vector<std::unique_ptr<KernelBench>> benches;
  std::vector<MatmulMeasurement> result;
  std::vector<Case> cases;
  for (const Kernel& kernel : kKernels) benches.push_back(std::make_unique<KernelBench>(team, kernel, l2));
  bool is_slow = false;
  for (std::size_t row = 0; row < kRows.size() && !is_slow; ++row)
    for (std::size_t index = 0; index < kKernels.size(); ++index) {
      KernelBench& bench = *benches[index];
      const int rows = kRows[row];
      const auto begin = std::chrono::steady_clock::now();
      (void)bench.rate(rows, 1);
      is_slow = is_slow || std::chrono::steady_clock::now() - begin > 2 * kLongestProduct;
      const Seconds sample = std::min(effort.sample, kLongestSample);
      const std::int64_t repeats =
          choose_repeats(Clock::wall, sample, [&](std::int64_t each) { (void)bench.rate(rows, each); });
      cases.push_back({&bench, rows, repeats, {}});
      result.push_back({kKernels[index].weights, kKernels[index].activations, rows, {}});
    }
  for (int round = 0; round < effort.runs; ++round)
    for (Case& each : cases) each.rates.push_back(each.bench->rate(each.rows, each.repeats));
  for (std::size_t index = 0; index < cases.size(); ++index) result[index].rate = spread_of(cases[index].rates);
  return result;
}

}  // namespace dculab::engine
