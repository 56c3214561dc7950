#include "engine/probe/matmul_probe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>

#include "engine/probe/page_buffer.hpp"
#include "engine/probe/probe_weights.hpp"
#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/packed_weights.hpp"

namespace dculab::engine {
namespace {

using kernels::MatmulArgs;
using kernels::WeightView;
using kernels::cpu::ThreadPool;

constexpr int kLongRow = 2048;  // in-features
constexpr int kShortRow = 512;
constexpr int kFirstPacked = kernels::cpu::kStreamedRows + 1;
constexpr std::array kRows{1, 2, 4, 8, kernels::cpu::kStreamedRows, kFirstPacked, 64, 256};
constexpr std::array kRowsOfShort{1, 8, kernels::cpu::kStreamedRows, kFirstPacked, 64, 256};
constexpr Seconds kLongestSample{4e-3};
constexpr std::chrono::milliseconds kLongestProduct{40};  // more rows than a product of that time has are left out
// Of all threads together, as the larger matrices of a layer have them. A product starts with rounding its activations
// and with an idle memory: with half of L2 that would be a tenth of it.
constexpr int kOutFeaturesFromMemory = 8192;
constexpr int kFewestCopies = 2;

struct Kernel {
  Dtype weights;
  ActivationMode activations;
};
constexpr std::array kKernels{Kernel{Dtype::f32, ActivationMode::exact},     Kernel{Dtype::f16, ActivationMode::exact},
                              Kernel{Dtype::bf16, ActivationMode::exact},    Kernel{Dtype::int8, ActivationMode::exact},
                              Kernel{Dtype::int8, ActivationMode::int8},     Kernel{Dtype::int4, ActivationMode::exact},
                              Kernel{Dtype::int4, ActivationMode::int8},     Kernel{Dtype::bf16, ActivationMode::bf16},
                              Kernel{Dtype::fp8_e4m3, ActivationMode::exact}};

constexpr int kStrip = kernels::cpu::PackedLayout::kStripRows;

// Half of the cache, so that activations and results find room beside the weights.
[[nodiscard]] int out_features_in(Bytes cache, Dtype weights, int in_features) {
  const Bytes strip = storage(weights, kStrip * in_features);
  return kStrip * std::max(1, static_cast<int>(0.5 * cache / strip));
}

// A thread's part of those from memory.
[[nodiscard]] int out_features_of_one(int threads) {
  return kStrip * std::max(1, kOutFeaturesFromMemory / (kStrip * threads));
}

// Enough for a thread's copies of the widest weights.
[[nodiscard]] std::size_t memory_of_one(const ProbedMemory& memory, int threads) {
  const Bytes copies = kFewestCopies * storage(Dtype::f32, out_features_of_one(threads) * kLongRow);
  return static_cast<std::size_t>(std::max(memory.beyond_caches / static_cast<double>(threads), copies).value());
}

// Where a product finds its weights.
enum class Source : std::uint8_t { cache, memory };

// What one thread multiplies with: a team of its own that is itself alone, so that no fork and join is in the time.
class Product {
 public:
  Product(const Kernel& kernel, int in_features, Bytes cache, int threads)
      : in_features_(in_features),
        small_(kernel.weights, out_features_in(cache, kernel.weights, in_features), in_features),
        large_(kernel.weights, out_features_of_one(threads), in_features),
        x_(static_cast<std::size_t>(kRows.back()) * static_cast<std::size_t>(in_features)),
        y_(static_cast<std::size_t>(kRows.back()) *
           static_cast<std::size_t>(std::max(small_.view().rows, large_.view().rows))),
        activations_(kernel.activations) {
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i * 37 % 101) / 101.0F - 0.5F;
  }

  [[nodiscard]] Bytes bytes_per_weight() const {
    return Bytes(static_cast<double>(large_.size()) / (static_cast<double>(large_.view().rows) * in_features_));
  }

  // From now on products from memory take copy after copy in `memory`.
  void copy_weights_to(const PageBuffer& memory) {
    memory_ = memory.data();
    copies_ = memory.size() / large_.size();
    for (std::size_t copy = 0; copy < copies_; ++copy)
      std::memcpy(memory_ + copy * large_.size(), large_.view().data, large_.size());
  }

  [[nodiscard]] FlopCount multiply(Source source, int rows, std::int64_t repeats) {
    WeightView view = (source == Source::cache ? small_ : large_).view();
    MatmulArgs args;
    args.x = x_.data(), args.y = y_.data(), args.m = rows, args.k = in_features_;
    args.activations = activations_;
    for (std::int64_t i = 0; i < repeats; ++i) {
      if (source == Source::memory && copies_ > 0) view.data = memory_ + (turn_++ % copies_) * large_.size();
      args.weights[0] = view;
      kernels::cpu::matmul(alone_, workspace_, args);
    }
    return FlopCount(2.0 * rows * view.rows * in_features_ * static_cast<double>(repeats));
  }

 private:
  ThreadPool alone_{1};
  kernels::cpu::Workspace workspace_;
  int in_features_;
  ProbeWeights small_, large_;
  std::vector<float> x_, y_;
  ActivationMode activations_;
  std::byte* memory_ = nullptr;
  std::size_t copies_ = 0, turn_ = 0;
};

// Where the threads' copies of weights lie: a part for each thread.
using WeightMemory = std::vector<std::unique_ptr<PageBuffer>>;

// One kernel on all threads at once.
class KernelBench {
 public:
  KernelBench(ThreadPool& team, const Kernel& kernel, int in_features, Bytes cache) : team_(team) {
    for (int thread = 0; thread < team.num_threads(); ++thread)
      products_.push_back(std::make_unique<Product>(kernel, in_features, cache, team.num_threads()));
  }

  void copy_weights_to(const WeightMemory& memory) {
    on_every_thread([&](std::size_t thread) { products_[thread]->copy_weights_to(*memory[thread]); });
  }

  [[nodiscard]] FlopsPerSecond rate(Source source, int rows, std::int64_t repeats) {
    on_every_thread([&](std::size_t thread) { (void)products_[thread]->multiply(source, rows, 1); });  // warms up
    return sum_of_rates<FlopsPerSecond>(team_, [&](int thread) {
      return products_[static_cast<std::size_t>(thread)]->multiply(source, rows, repeats);
    });
  }

  // Bytes of the weights per second, at `rate` with `rows` rows.
  [[nodiscard]] BytesPerSecond weights_read(FlopsPerSecond rate, int rows) const {
    constexpr FlopCount kMultiplyAdd{2};
    return rate / (rows * kMultiplyAdd) * products_.front()->bytes_per_weight();
  }

 private:
  template <typename Work>
  void on_every_thread(Work&& work) {
    team_.parallel_for(
        team_.num_threads(), [&](int thread, int) { work(static_cast<std::size_t>(thread)); },
        kernels::cpu::Distribution::fixed);
  }

  ThreadPool& team_;
  std::vector<std::unique_ptr<Product>> products_;
};

struct Samples {
  std::int64_t repeats = 0;  // of the product in each sample; 0: not yet chosen
  std::vector<FlopsPerSecond> rates;
};

// A kernel at one length of weight rows and one number of rows of activations.
struct Case {
  Kernel kernel;
  int in_features;
  KernelBench* bench;
  int rows;
  Samples from_cache, from_memory;
};

class MatmulProbe {
 public:
  MatmulProbe(ThreadPool& team, const ProbedMemory& memory, const Effort& effort) : effort_(effort) {
    for (const int in_features : {kLongRow, kShortRow})
      for (const Kernel& kernel : kKernels)
        benches_.push_back(std::make_unique<KernelBench>(team, kernel, in_features, memory.cache));
    for (int thread = 0; thread < team.num_threads(); ++thread)
      memory_.push_back(std::make_unique<PageBuffer>(memory_of_one(memory, team.num_threads()), PageSize::huge));
    const int most_rows = largest_rows();
    add_cases(kLongRow, kRows, most_rows);
    add_cases(kShortRow, kRowsOfShort, most_rows);
  }

  [[nodiscard]] std::vector<MatmulMeasurement> measure() {
    for (int run = 0; run < effort_.runs; ++run)
      for (Case& each : cases_) sample(each, Source::cache, each.from_cache);
    for (int run = 0; run < effort_.matmul_runs; ++run)
      for (const auto& bench : benches_) {
        bench->copy_weights_to(memory_);
        for (Case& each : cases_)
          if (each.bench == bench.get()) sample(each, Source::memory, each.from_memory);
      }
    std::vector<MatmulMeasurement> result;
    for (const Case& each : cases_) {
      std::vector<BytesPerSecond> weights_read;
      for (const FlopsPerSecond rate : each.from_memory.rates)
        weights_read.push_back(each.bench->weights_read(rate, each.rows));
      result.push_back({each.kernel.weights, each.kernel.activations, each.in_features, each.rows,
                        spread_of(each.from_cache.rates), spread_of(std::move(weights_read))});
    }
    return result;
  }

 private:
  // Of the kernels' benches in their order, those of long rows before those of short ones.
  void add_cases(int in_features, std::span<const int> all_rows, int most_rows) {
    const std::size_t first = in_features == kLongRow ? 0 : kKernels.size();
    for (std::size_t index = 0; index < kKernels.size(); ++index)
      for (const int rows : all_rows)
        if (rows <= most_rows)
          cases_.push_back({kKernels[index], in_features, benches_[first + index].get(), rows, {}, {}});
  }

  // The first number of rows at which some product takes kLongestProduct, or the last.
  [[nodiscard]] int largest_rows() {
    for (const int rows : kRows)
      for (const auto& bench : benches_) {
        const auto begin = std::chrono::steady_clock::now();
        (void)bench->rate(Source::memory, rows, 1);
        if (std::chrono::steady_clock::now() - begin > 2 * kLongestProduct) return rows;
      }
    return kRows.back();
  }

  void sample(const Case& each, Source source, Samples& samples) {
    if (samples.repeats == 0)
      samples.repeats =
          choose_repeats(SampleClock::wall, std::min(effort_.sample, kLongestSample),
                         [&](std::int64_t repeats) { (void)each.bench->rate(source, each.rows, repeats); });
    samples.rates.push_back(each.bench->rate(source, each.rows, samples.repeats));
  }

  Effort effort_;
  std::vector<std::unique_ptr<KernelBench>> benches_;
  WeightMemory memory_;
  std::vector<Case> cases_;
};

}  // namespace

std::vector<MatmulMeasurement> measure_matmuls(ThreadPool& team, const ProbedMemory& memory, const Effort& effort) {
  return MatmulProbe(team, memory, effort).measure();
}

}  // namespace dculab::engine
