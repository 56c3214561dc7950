// Do products with packed weights agree with the reference, and keep their bits whatever is computed beside them?
#include <limits>
#include <memory>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/quantized_matrices.hpp"

namespace dculab::kernels {
namespace {

constexpr ActivationMode kModes[] = {ActivationMode::exact, ActivationMode::int8};

// One product of up to three matrices with biases.
struct QuantizedCase {
  std::vector<QuantizedMatrix> matrices;
  std::vector<std::unique_ptr<PackedMatrix>> packed;
  std::vector<std::vector<float>> biases;
  std::vector<float> x;
  int m = 0, k = 0, n = 0;

  QuantizedCase(const std::vector<QuantizedSizes>& sizes, int m_, GroupOrder order = GroupOrder::consecutive)
      : m(m_), k(sizes[0].columns) {
    TensorSource source(static_cast<unsigned>(1000 * m + k));
    for (const QuantizedSizes& each : sizes) {
      matrices.push_back(random_quantized(source, each, order));
      packed.push_back(std::make_unique<PackedMatrix>(matrices.back()));
      biases.push_back(source.floats(static_cast<std::size_t>(each.rows)));
      n += each.rows;
    }
    x = source.floats(static_cast<std::size_t>(m) * static_cast<std::size_t>(k));
    x[x.size() / 2] = 6.0F;  // an outlier
  }

  [[nodiscard]] std::vector<float> expected(ActivationMode mode) const {
    std::vector<float> y(static_cast<std::size_t>(m) * static_cast<std::size_t>(n), NAN);
    std::size_t column = 0;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const auto rows = static_cast<std::size_t>(matrices[i].rows);
      std::vector<float> part(static_cast<std::size_t>(m) * rows, NAN);
      reference::quantized_matmul({x.data(), &matrices[i], bias(i), part.data(), m, mode});
      for (std::size_t row = 0; row < static_cast<std::size_t>(m); ++row) {
        std::copy_n(part.begin() + std::ptrdiff_t(row * rows), rows,
                    y.begin() + std::ptrdiff_t(row * static_cast<std::size_t>(n) + column));
      }
      column += rows;
    }
    return y;
  }

  // y for rows [begin, begin + count) of x.
  [[nodiscard]] std::vector<float> on_cpu(ActivationMode mode, int num_threads, int begin, int count) const {
    cpu::ThreadPool threads(num_threads);
    cpu::Workspace workspace;
    std::vector<float> y(static_cast<std::size_t>(count) * static_cast<std::size_t>(n), NAN);
    MatmulArgs args;
    args.x = x.data() + std::ptrdiff_t{begin} * k, args.y = y.data();
    args.m = count, args.k = k;
    args.num_weights = static_cast<int>(matrices.size());
    args.activations = mode;
    for (std::size_t i = 0; i < matrices.size(); ++i) args.weights[i] = packed[i]->view(), args.biases[i] = bias(i);
    cpu::matmul(threads, workspace, args);
    return y;
  }

 private:
  // The second matrix has none.
  [[nodiscard]] const float* bias(std::size_t i) const { return i == 1 ? nullptr : biases[i].data(); }
};

void check_quantized(const QuantizedCase& c) {
  for (const ActivationMode mode : kModes) {
    const std::vector<float> expected = c.expected(mode);
    for_each_vector_target([&](std::string_view target) {
      INFO(target << " bits " << c.matrices[0].bits << " mode " << int(mode) << " m " << c.m << " k " << c.k << " n "
                  << c.n << " group_size " << c.matrices[0].group_size);
      CHECK(largest_difference(c.on_cpu(mode, 2, 0, c.m), expected) <= sum_tolerance(c.k, 1.0));
    });
  }
}

}  // namespace

TEST_CASE("activations of 8 bits share a scale over at most 128 in-features of a group") {
  CHECK(activation_group_size(128) == 128);
  CHECK(activation_group_size(64) == 64);
  CHECK(activation_group_size(2048) == 128);
  CHECK(activation_group_size(5632) == 128);
  CHECK(activation_group_size(192) == 96);
  CHECK(activation_group_size(1000) == 40);
  CHECK(activation_group_size(8 * 17) == 8);
}

TEST_CASE("packed weights multiply as the reference does, for all bits, modes and odd sizes") {
  for (const int bits : {2, 3, 4, 8}) {
    for (int m = 1; m <= 20; ++m) check_quantized(QuantizedCase({{13, 64, bits, 32}}, m));
    for (const int n : {1, 15, 16, 17, 33, 131}) check_quantized(QuantizedCase({{n, 96, bits, 96}}, 3));
    for (const int group_size : {8, 16, 40, 128, 136, 1280}) {
      for (const int m : {1, 5, 37}) {
        const int columns = group_size >= 128 ? group_size : 5 * group_size;
        check_quantized(QuantizedCase({{30, columns, bits, group_size}}, m));
      }
    }
  }
  check_quantized(QuantizedCase({{300, 512, 4, 128}, {64, 512, 4, 128}, {64, 512, 4, 128}}, 70));
}

TEST_CASE("matrices that share x may differ in bits, group size and order") {
  check_quantized(QuantizedCase({{40, 256, 4, 64}, {20, 256, 8, 256}, {24, 256, 8, 128}}, 6));
  for (const int bits : {4, 8}) {
    for (const int m : {1, 3, 40}) {
      check_quantized(QuantizedCase({{40, 256, bits, 32}, {20, 256, bits, 32}}, m, GroupOrder::act_order));
    }
  }
}

TEST_CASE("a row of a packed product has the same bits alone, in any batch and on any number of threads") {
  for (const int bits : {4, 8}) {
    for (const int group_size : {64, 640}) {
      const QuantizedCase c({{200, 640, bits, group_size}, {7, 640, bits, group_size}}, 70);
      for (const ActivationMode mode : kModes) {
        for_each_vector_target([&](std::string_view target) {
          INFO(target << " bits " << bits << " mode " << int(mode));
          const std::vector<float> whole = c.on_cpu(mode, 1, 0, c.m);
          for (const int num_threads : {2, 3}) CHECK(c.on_cpu(mode, num_threads, 0, c.m) == whole);
          for (const int count : {1, 2, 3, 4, 5, 8, 9, 16, 17, 29, 64}) {
            const int begin = c.m - count;
            const std::vector<float> part(whole.begin() + std::ptrdiff_t{begin} * c.n, whole.end());
            CHECK(c.on_cpu(mode, 2, begin, count) == part);
          }
        });
      }
    }
  }
}

TEST_CASE("what is not finite stays so, and only in its own row") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    QuantizedCase c({{20, 128, 4, 64}}, 3);
    c.x[128 + 5] = bad;
    for (const ActivationMode mode : kModes) {
      for_each_vector_target([&](std::string_view) {
        const std::vector<float> y = c.on_cpu(mode, 1, 0, 3);
        const auto finite = [](float value) { return std::isfinite(value); };
        CHECK(std::all_of(y.begin(), y.begin() + 20, finite));
        CHECK(std::all_of(y.begin() + 40, y.end(), finite));
        if (mode == ActivationMode::int8) CHECK(std::none_of(y.begin() + 20, y.begin() + 40, finite));
      });
    }
  }
}

TEST_CASE("activations of zero and next to zero give the bias") {
  QuantizedCase c({{20, 64, 8, 64}}, 1);
  for (float& value : c.x) value = 1e-38F;
  c.x[3] = 0.0F;
  for_each_vector_target([&](std::string_view) { CHECK(c.on_cpu(ActivationMode::int8, 1, 0, 1) == c.biases[0]); });
}

}  // namespace dculab::kernels
