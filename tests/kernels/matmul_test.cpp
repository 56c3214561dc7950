// Does the matrix product agree with the reference, and keep its bits whatever is computed beside it?
#include <cstring>
#include <utility>

#include "tests/kernels/tensors.hpp"

#include "core/activation_mode.hpp"
#include "kernels/number_format.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels {
namespace {

// Weights and activations of one product; `rows` has one entry per matrix.
struct MatmulCase {
  std::vector<int> rows;
  int m = 0, k = 0;
  std::vector<float> x;
  std::vector<std::vector<std::byte>> weights;
  std::vector<std::vector<float>> biases;  // of the matrices that have one
  std::vector<std::vector<float>> scales;  // of FP8 matrices
  int row_shift = Fp8Scales::kAll, column_shift = Fp8Scales::kAll;
  Dtype dtype = Dtype::f32;
  ActivationMode activations = ActivationMode::exact;

  MatmulCase(std::vector<int> rows_, int m_, int k_, Dtype dtype_)
      : rows(std::move(rows_)), m(m_), k(k_), dtype(dtype_) {
    TensorSource source(static_cast<unsigned>(m * 1000 + k));
    x = source.floats(static_cast<std::size_t>(m) * static_cast<std::size_t>(k));
    for (const int n : rows) {
      weights.push_back(source.stored(static_cast<std::size_t>(n) * static_cast<std::size_t>(k), dtype));
    }
  }

  MatmulCase& round_activations() {
    activations = ActivationMode::bf16;
    return *this;
  }

  // Biases for all matrices but the second.
  MatmulCase& add_biases() {
    TensorSource source(9);
    for (std::size_t i = 0; i < rows.size(); ++i)
      biases.push_back(i == 1 ? std::vector<float>() : source.floats(static_cast<std::size_t>(rows[i]), 5.0F));
    return *this;
  }

  // Of FP8 matrices: a scale for each block of 2^row_shift x 2^column_shift weights, between 1/2 and 1.
  MatmulCase& add_scales(int row_shift_, int column_shift_) {
    row_shift = row_shift_, column_shift = column_shift_;
    TensorSource source(10);
    for (const int n : rows) {
      const int blocks = (((n - 1) >> row_shift) + 1) * column_blocks();
      scales.push_back(source.floats(static_cast<std::size_t>(blocks)));
      for (float& scale : scales.back()) scale = Fp8Scales::kFactor * (0.5F + 0.5F / (1 + std::abs(scale)));
    }
    return *this;
  }

  [[nodiscard]] int column_blocks() const { return ((k - 1) >> column_shift) + 1; }
  [[nodiscard]] int columns() const {
    int total = 0;
    for (const int n : rows) total += n;
    return total;
  }

  // y for rows [begin, begin + count) of x.
  template <typename Kernel>
  std::vector<float> run(Kernel&& kernel, int begin, int count) const {
    std::vector<float> y(static_cast<std::size_t>(count) * static_cast<std::size_t>(columns()), NAN);
    MatmulArgs args;
    args.x = x.data() + std::ptrdiff_t{begin} * k;
    args.y = y.data();
    args.m = count;
    args.k = k;
    args.activations = activations;
    args.num_weights = static_cast<int>(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      args.weights[i] = {weights[i].data(), dtype, rows[i]};
      if (!scales.empty()) args.weights[i].scales = {scales[i].data(), row_shift, column_shift, column_blocks()};
      if (i < biases.size() && !biases[i].empty()) args.biases[i] = biases[i].data();
    }
    kernel(args);
    return y;
  }
  [[nodiscard]] std::vector<float> on_cpu(int num_threads, int begin, int count,
                                          std::ptrdiff_t half_of_l2 = cpu::half_of_l2()) const {
    cpu::ThreadPool threads(num_threads);
    cpu::Workspace workspace;
    return run([&](const MatmulArgs& args) { cpu::matmul(threads, workspace, args, half_of_l2); }, begin, count);
  }
};

void check_against_reference(const MatmulCase& c) {
  const std::vector<float> expected = c.run([](const MatmulArgs& args) { reference::matmul(args); }, 0, c.m);
  for_each_vector_target([&](std::string_view target) {
    INFO(target << " " << name(c.dtype) << " m " << c.m << " k " << c.k << " n " << c.columns());
    CHECK(largest_difference(c.on_cpu(2, 0, c.m), expected) <= sum_tolerance(c.k, 1.0));
  });
}

// Of whole rows of x in all batches and with some numbers of threads.
void check_bits(const MatmulCase& c) {
  for_each_vector_target([&](std::string_view target) {
    INFO(target << " " << name(c.dtype) << ", activations " << name(c.activations) << ", k " << c.k);
    const std::vector<float> whole = c.on_cpu(1, 0, c.m);
    for (const int num_threads : {2, 3}) CHECK(c.on_cpu(num_threads, 0, c.m) == whole);
    for (const int count : {1, 2, 3, 6, 7, 16, 17, 29}) {
      const int begin = c.m - count;
      const std::vector<float> part(whole.begin() + std::ptrdiff_t{begin} * c.columns(), whole.end());
      CHECK(c.on_cpu(2, begin, count) == part);
    }
  });
}

// With a task for each panel of w, because x fits into the cache, and with as many panels in a task as fit into it.
void check_grouped_panels(const MatmulCase& c) {
  constexpr std::ptrdiff_t kAllFits = 1 << 30, kTwoPanels = 560 * 1024;  // of AVX-512; four of AVX2, eight of SSE4
  const std::vector<float> expected = c.run([](const MatmulArgs& args) { reference::matmul(args); }, 0, c.m);
  for_each_vector_target([&](std::string_view target) {
    INFO(target << " " << name(c.dtype) << ", activations " << name(c.activations) << ", k " << c.k);
    const std::vector<float> apart = c.on_cpu(2, 0, c.m, kAllFits);
    CHECK(largest_difference(apart, expected) <= sum_tolerance(c.k, 1.0));
    for (const int num_threads : {1, 2, 3}) CHECK(c.on_cpu(num_threads, 0, c.m, kTwoPanels) == apart);
  });
}

}  // namespace

TEST_CASE("matmul agrees with the reference for every dtype and odd sizes") {
  for (const Dtype dtype : kStoredDtypes) {
    for (int m = 1; m <= 20; ++m) check_against_reference(MatmulCase({13}, m, 67, dtype));
    for (const int k : {1, 7, 16, 31, 513, 1100, 2047, 2048, 2049, 4133}) {
      for (const int m : {1, 5, 37}) check_against_reference(MatmulCase({9, 1, 6}, m, k, dtype));
    }
    for (const int n : {1, 2, 3, 4, 5, 127, 131}) check_against_reference(MatmulCase({n}, 33, 96, dtype));
    check_against_reference(MatmulCase({512, 64, 64}, 3, 512, dtype));
    check_against_reference(MatmulCase({300, 300}, 70, 1030, dtype));
  }
}

TEST_CASE("matmul adds each matrix's own bias") {
  for (const Dtype dtype : kStoredDtypes) {
    for (const int m : {1, 3, 16, 17, 70}) {
      check_against_reference(MatmulCase({13}, m, 67, dtype).add_biases());
      check_against_reference(MatmulCase({64, 16, 17}, m, 96, dtype).add_biases());
      check_against_reference(MatmulCase({1, 2, 300}, m, 513, dtype).add_biases());
    }
  }
}

TEST_CASE("a row of matmul has the same bits alone, in any batch and on any number of threads") {
  for (const int k : {67, 1100, 2048, 4133}) {
    for (const Dtype dtype : kStoredDtypes) check_bits(MatmulCase({100, 7, 30}, 50, k, dtype).add_biases());
    const int pairs = k / 2 * 2;
    check_bits(MatmulCase({100, 7, 30}, 50, pairs, Dtype::bf16).add_biases().round_activations());
  }
}

TEST_CASE("matmul has the same bits however many panels of weights a task takes") {
  for (const Dtype dtype : kStoredDtypes) check_grouped_panels(MatmulCase({150, 9, 70}, 80, 2100, dtype).add_biases());
  check_grouped_panels(MatmulCase({150, 9, 70}, 80, 2100, Dtype::bf16).add_biases().round_activations());
}

TEST_CASE("matmul with BF16 activations agrees with the reference, whose x is rounded too") {
  for (int m = 1; m <= 20; ++m) check_against_reference(MatmulCase({13}, m, 66, Dtype::bf16).round_activations());
  for (const int k : {2, 6, 16, 30, 512, 1100, 2048, 4096, 4098, 8194})
    for (const int m : {1, 5, 37})
      check_against_reference(MatmulCase({9, 1, 6}, m, k, Dtype::bf16).add_biases().round_activations());
  for (const int n : {1, 2, 3, 4, 5, 127, 131})
    check_against_reference(MatmulCase({n}, 33, 96, Dtype::bf16).round_activations());
}

TEST_CASE("matmul with FP8 weights agrees with the reference: a scale a block, a row or a matrix, and odd sizes") {
  constexpr int kAll = Fp8Scales::kAll;
  for (const auto& [row_shift, column_shift] : {std::pair{7, 7}, {0, kAll}, {kAll, kAll}, {0, 7}, {2, 8}, {7, 12}}) {
    const auto check = [rows_of = row_shift, columns_of = column_shift](const std::vector<int>& rows, int m, int k) {
      MatmulCase each(rows, m, k, Dtype::fp8_e4m3);
      each.add_scales(rows_of, columns_of);
      if (k >= 67) each.add_biases();
      check_against_reference(each);
    };
    for (int m = 1; m <= 8; ++m) check({13}, m, 67);
    for (const int k : {1, 16, 127, 128, 129, 2048, 2049, 4133})
      for (const int m : {1, 5, 37}) check({9, 1, 6}, m, k);
    check({300, 130}, 70, 1030);
  }
}

TEST_CASE("a row of matmul with FP8 weights has the same bits in any batch, and subnormal weights are not lost") {
  for (const int k : {67, 1100, 4133}) {
    check_bits(MatmulCase({100, 7, 30}, 50, k, Dtype::fp8_e4m3).add_scales(7, 7).add_biases());
    check_bits(MatmulCase({100, 7, 30}, 50, k, Dtype::fp8_e4m3).add_scales(0, Fp8Scales::kAll));
  }
  check_grouped_panels(MatmulCase({150, 9, 70}, 80, 2100, Dtype::fp8_e4m3).add_scales(7, 7));
  constexpr int kCodes = 256;
  MatmulCase each({kCodes}, 1, 16, Dtype::fp8_e4m3);  // row i holds code i, and the others are 0
  each.add_scales(0, Fp8Scales::kAll);
  each.x.assign(each.x.size(), 1.0F);
  each.weights[0].assign(each.weights[0].size(), std::byte{0});
  for (std::size_t code = 0; code < kCodes; ++code) each.weights[0][16 * code + 3] = static_cast<std::byte>(code);
  for_each_vector_target([&](std::string_view target) {
    const std::vector<float> y = each.on_cpu(1, 0, 1);
    for (std::size_t code = 0; code < kCodes; ++code) {
      INFO(target << ", code " << code);
      const float expected =
          f32_from_fp8_e4m3(static_cast<std::uint8_t>(code)) * (each.scales[0][code] / Fp8Scales::kFactor);
      if (!std::isnan(expected)) CHECK(y[code] == expected);  // a checkpoint has no NaN
    }
  });
}

// Whether the CPU's dot product sums them or two multiply-adds. Pairs 0 and 16 share a lane in vectors of any length.
TEST_CASE("of a pair of BF16 products the odd one is added first, each rounded to F32") {
  constexpr int kPairs = 32, kSecond = 32;
  TensorSource source(11);
  for (int round = 0; round < 200; ++round) {
    MatmulCase c({1}, 1, 2 * kPairs, Dtype::bf16);
    c.round_activations();
    c.x.assign(c.x.size(), 0.0F);
    const std::vector<float> x = source.floats(4);
    double sum = 0;
    for (const auto& [place, index] : {std::pair{1, 0U}, {0, 1U}, {kSecond + 1, 2U}, {kSecond, 3U}}) {
      const auto at = static_cast<std::size_t>(place);
      c.x[at] = x[index];
      const std::uint16_t weight = bf16_from_f32(source.floats(1)[0]);
      std::memcpy(c.weights[0].data() + 2 * at, &weight, 2);
      // A product of two BF16 values is exact in F32, and so is the sum in double before it is rounded.
      sum = static_cast<float>(sum + double{f32_from_bf16(bf16_from_f32(x[index]))} * f32_from_bf16(weight));
    }
    for_each_vector_target([&](std::string_view target) {
      INFO(target << ", round " << round);
      CHECK(c.on_cpu(1, 0, 1)[0] == static_cast<float>(sum));
    });
  }
}

}  // namespace dculab::kernels
