// How fast are products with int4, int8 and F16 weights, in the shapes of TinyLlama-1.1B?
//
// For each shape, number of tokens, format and mode, the best of several rounds that take turns: weights per second,
// bytes of weights per second and their share of what a plain read of memory reaches in the same rounds, operations per
// second. One thread is timed by its own CPU time, so that a neighbour who takes the CPU does not count; several by the
// clock. Usage: quantized_matmul_bench [rounds = 5] [threads = 1] [tokens = 1,4,16,512]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/cpu/packed_weights.hpp"
#include "kernels/cpu/probe/read_stream.hpp"
#include "kernels/number_format.hpp"

namespace {

using namespace dculab;
using namespace dculab::kernels;

constexpr std::size_t kColdBytes = std::size_t{768} << 20;  // of weights in turn: more than a last-level cache holds
constexpr double kShortestSeconds = 0.02;                   // of one timing

double now(int threads) {
  timespec time{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of one call of `body`.
template <typename Body>
double seconds_of(int threads, Body&& body) {
  body();
  const double begin = now(threads);
  int calls = 0;
  double end = begin;
  for (; end - begin < kShortestSeconds; end = now(threads)) body(), ++calls;
  return (end - begin) / calls;
}

struct Shape {
  const char* name;
  int rows, columns;
};
constexpr Shape kShapes[] = {{"qkv", 2560, 2048}, {"o", 2048, 2048}, {"gate_up", 11264, 2048}, {"down", 2048, 5632}};

struct Format {
  const char* name;
  Dtype dtype;
  int group_size;  // 0: the whole row
  ActivationMode activations;
};
constexpr Format kFormats[] = {{"int4 g128, int8", Dtype::int4, 128, ActivationMode::int8},
                               {"int4 g128, exact", Dtype::int4, 128, ActivationMode::exact},
                               {"int8, int8", Dtype::int8, 0, ActivationMode::int8},
                               {"int8, exact", Dtype::int8, 0, ActivationMode::exact},
                               {"f16", Dtype::f16, 0, ActivationMode::exact}};

QuantizedMatrix random_matrix(const Shape& shape, const Format& format) {
  QuantizedMatrix matrix;
  matrix.rows = shape.rows, matrix.columns = shape.columns, matrix.bits = bits(format.dtype);
  matrix.group_size = format.group_size == 0 ? shape.columns : format.group_size;
  matrix.q.resize(static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.columns));
  std::mt19937 random(1);
  const unsigned largest = (1U << matrix.bits) - 1U;
  for (std::uint8_t& q : matrix.q) q = static_cast<std::uint8_t>(random() & largest);
  const std::size_t scales = static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(matrix.groups());
  matrix.scales.assign(scales, 0x1p-8F);
  matrix.zeros.assign(scales, static_cast<std::uint8_t>(largest / 2 + 1));
  return matrix;
}

// The first cache line in memory.
template <typename Byte>
Byte* on_line(Byte* memory) {
  return memory + (64 - reinterpret_cast<std::uintptr_t>(memory) % 64) % 64;
}

// Enough copies of one matrix that a pass over all finds none in a cache.
class Weights {
 public:
  Weights(const Shape& shape, const Format& format) {
    if (format.dtype == Dtype::f16) {
      bytes_ = 2 * static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.columns);
      allocate();
      const std::uint16_t small = f16_from_f32(0.01F);
      for (std::size_t i = 0; i < bytes_; i += 2) std::memcpy(at(0) + i, &small, 2);
      view_ = {at(0), Dtype::f16, shape.rows};
    } else {
      const QuantizedMatrix matrix = random_matrix(shape, format);
      bytes_ = cpu::packed_bytes(matrix.rows, matrix.columns, matrix.bits, matrix.group_size);
      allocate();
      view_ = cpu::pack_weights(matrix, nullptr, at(0));
    }
    for (std::size_t copy = 1; copy < copies_; ++copy) std::memcpy(at(copy), at(0), bytes_);
  }
  [[nodiscard]] double bytes() const { return static_cast<double>(bytes_); }
  [[nodiscard]] WeightView next() {
    WeightView view = view_;
    view.data = at(turn_++ % copies_);
    return view;
  }

 private:
  void allocate() {
    copies_ = kColdBytes / bytes_ + 1;
    memory_.resize(bytes_ * copies_ + 64);
  }
  std::byte* at(std::size_t copy) { return on_line(memory_.data()) + copy * bytes_; }

  std::vector<std::byte> memory_;
  std::size_t bytes_ = 0, copies_ = 0, turn_ = 0;
  WeightView view_;
};

struct Case {
  Shape shape;
  Format format;
  int tokens;
  double seconds = 1e9, bytes = 0;
};

double time_case(const Case& work, Weights& weights, cpu::ThreadPool& threads, cpu::Workspace& workspace) {
  std::vector<float> x(static_cast<std::size_t>(work.tokens) * static_cast<std::size_t>(work.shape.columns));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 101.0F - 0.5F;
  std::vector<float> y(static_cast<std::size_t>(work.tokens) * static_cast<std::size_t>(work.shape.rows));
  return seconds_of(threads.num_threads(), [&] {
    MatmulArgs args;
    args.x = x.data(), args.y = y.data(), args.m = work.tokens, args.k = work.shape.columns;
    args.weights[0] = weights.next();
    args.activations = work.format.activations;
    cpu::matmul(threads, workspace, args);
  });
}

// Bytes per second of a plain read of memory, all threads together, in the shape that suits it best.
double read_rate(cpu::ThreadPool& threads, const std::vector<std::byte>& memory) {
  const auto tasks = static_cast<std::size_t>(threads.num_threads());
  const std::size_t part = memory.size() / tasks / cpu::kReadGranule * cpu::kReadGranule;
  std::vector<std::uint64_t> folded(8 * tasks);
  const std::byte* begin = on_line(memory.data());
  double best = 0;
  for (const cpu::StreamShape shape : {cpu::StreamShape{1, 0}, {1, 2048}, {1, 4096}, {4, 1024}}) {
    const double seconds = seconds_of(threads.num_threads(), [&] {
      threads.parallel_for(threads.num_threads(), [&](int task, int) {
        const auto index = static_cast<std::size_t>(task);
        folded[8 * index] ^= cpu::read_memory(begin + part * index, part, 1, shape);
      });
    });
    best = std::max(best, static_cast<double>(part * tasks) / seconds);
  }
  return best;
}

void print(const std::vector<Case>& cases, double read) {
  std::printf("plain read of memory: %.1f GB/s\n", read / 1e9);
  std::printf("%-8s %6s  %-17s %10s %10s %8s %8s %8s\n", "matrix", "tokens", "weights, x", "us", "Gweights/s", "GB/s",
              "of read", "GOP/s");
  for (const Case& each : cases) {
    const double weights = static_cast<double>(each.shape.rows) * each.shape.columns;
    const double rate = each.bytes / each.seconds;
    std::printf("%-8s %6d  %-17s %10.0f %10.1f %8.2f %7.0f%% %8.1f\n", each.shape.name, each.tokens, each.format.name,
                each.seconds * 1e6, weights / each.seconds / 1e9, rate / 1e9, 100 * rate / read,
                2 * weights * each.tokens / each.seconds / 1e9);
  }
}

std::vector<int> numbers(const std::string& list) {
  std::vector<int> values;
  std::stringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) values.push_back(std::atoi(item.c_str()));
  return values;
}

}  // namespace

int main(int argc, char* argv[]) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  cpu::ThreadPool threads(argc > 2 ? std::atoi(argv[2]) : 1);
  cpu::Workspace workspace;
  std::vector<Case> cases;
  for (const int tokens : numbers(argc > 3 ? argv[3] : "1,4,16,512"))
    for (const Shape& shape : kShapes)
      for (const Format& format : kFormats) cases.push_back({shape, format, tokens});
  const std::vector<std::byte> memory(kColdBytes + 8192, std::byte{1});
  double read = 0;
  for (int round = 0; round < rounds; ++round) {
    read = std::max(read, read_rate(threads, memory));
    for (Case& each : cases) {
      Weights weights(each.shape, each.format);
      each.bytes = weights.bytes();
      each.seconds = std::min(each.seconds, time_case(each, weights, threads, workspace));
    }
  }
  print(cases, read);
  return 0;
}
