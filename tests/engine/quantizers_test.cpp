// Quantizers of one matrix: against AutoGPTQ, against each other, and what they refuse.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "core/error.hpp"
#include "engine/quantize/gptq.hpp"
#include "engine/quantize/input_statistics.hpp"
#include "engine/quantize/output_error.hpp"
#include "engine/quantize/smooth_quant.hpp"
#include "kernels/number_format.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return normal(random); });
  return values;
}

std::vector<float> read_floats(const TensorTable& tensors, const char* name) {
  const auto bytes = tensors.at(name).bytes;
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

double output_error(const WeightMatrix& weights, const kernels::QuantizedMatrix& matrix,
                    std::span<const float> hessian) {
  return relative_output_error(weights, dequantized(matrix), hessian);
}

// A Hessian of `tokens` random inputs of which in-feature i is i + 1 times as large as the first.
std::vector<float> hessian_of(int columns, int tokens, unsigned seed) {
  std::vector<float> inputs = random_values(static_cast<std::size_t>(columns * tokens), seed);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i] *= static_cast<float>(i % static_cast<std::size_t>(columns) + 1);
  kernels::cpu::ThreadPool threads(1);
  InputStatistics statistics(columns);
  statistics.add(threads, inputs);
  return statistics.hessian();
}

}  // namespace

TEST_CASE("GPTQ's output error is within 2 % of AutoGPTQ's on the same Hessian") {
  const auto folder = std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/gptq";
  const MappedFile file(folder / "layers.safetensors");
  const TensorTable tensors = read_tensor_table(file.bytes(), "layers.safetensors");
  const std::vector<float> values = read_floats(tensors, "weight"), hessian = read_floats(tensors, "hessian");
  const auto& shape = tensors.at("weight").shape;
  const WeightMatrix weights{values, static_cast<int>(shape[0]), static_cast<int>(shape[1])};
  kernels::cpu::ThreadPool threads(2);
  std::ifstream cases(folder / "layers.csv");
  std::string line;
  std::getline(cases, line);
  int count = 0;
  for (; std::getline(cases, line); ++count) {
    INFO(line);
    std::ranges::replace(line, ',', ' ');
    std::istringstream fields(line);
    int bits = 0, group_size = 0, desc_act = 0, sym = 0;
    double expected = 0;
    REQUIRE(fields >> bits >> group_size >> desc_act >> sym >> expected);
    const GridOptions grid{
        .bits = bits, .kind = sym != 0 ? GridKind::symmetric : GridKind::asymmetric, .lowest_zero = 0};
    const auto order = desc_act != 0 ? ColumnOrder::by_activation : ColumnOrder::as_stored;
    const InverseFactor factor = factor_inverse(hessian, weights.columns, order, 0.01);
    const double error = output_error(weights, gptq(threads, weights, factor, grid, group_size), hessian);
    CHECK_THAT(error, WithinRel(expected, 0.02));
    CHECK(error <= output_error(weights, round_to_nearest(weights, grid, group_size), hessian));
  }
  REQUIRE(count == 32);
}

TEST_CASE("GPTQ gives the same integers for any number of threads") {
  const std::vector<float> values = random_values(70 * 64, 1), hessian = hessian_of(64, 300, 2);
  const WeightMatrix weights{values, 70, 64};
  const InverseFactor factor = factor_inverse(hessian, 64, ColumnOrder::by_activation, 0.01);
  kernels::cpu::ThreadPool one(1), three(3);
  const GridOptions grid{.bits = 4, .kind = GridKind::asymmetric, .lowest_zero = 0};
  const auto alone = gptq(one, weights, factor, grid, 16), together = gptq(three, weights, factor, grid, 16);
  REQUIRE(alone.q == together.q);
  REQUIRE(alone.scales == together.scales);
  REQUIRE(alone.g_idx == together.g_idx);
  REQUIRE(alone.g_idx.front() == 3);  // the last in-feature is the largest
  REQUIRE(alone.g_idx.back() == 0);
}

TEST_CASE("with inputs that are not correlated GPTQ is rounding to nearest") {
  const std::vector<float> values = random_values(8 * 32, 3);
  std::vector<float> hessian(32 * 32);
  for (std::size_t i = 0; i < 32; ++i) hessian[i * 33] = 1.0F + static_cast<float>(i % 3);
  const WeightMatrix weights{values, 8, 32};
  kernels::cpu::ThreadPool threads(1);
  const GridOptions grid{.bits = 3, .kind = GridKind::asymmetric, .lowest_zero = 0};
  const InverseFactor factor = factor_inverse(hessian, 32, ColumnOrder::as_stored, 0.01);
  REQUIRE(gptq(threads, weights, factor, grid, 8).q == round_to_nearest(weights, grid, 8).q);
}

TEST_CASE("a Hessian without enough text is refused, one with damping and dead in-features is not") {
  const std::vector<float> hessian = hessian_of(16, 4, 5);  // rank 4
  REQUIRE_THROWS_AS(factor_inverse(hessian, 16, ColumnOrder::as_stored, 0.0), InputError);
  const std::vector<float> dead(16 * 16);
  const InverseFactor factor = factor_inverse(dead, 16, ColumnOrder::as_stored, 0.01);
  REQUIRE(factor.dead_columns == 16);
  REQUIRE(factor_inverse(hessian, 16, ColumnOrder::as_stored, 0.01).dead_columns == 0);
}

TEST_CASE("activations that are not finite are refused") {
  kernels::cpu::ThreadPool threads(1);
  InputStatistics statistics(4);
  REQUIRE_THROWS_AS(statistics.add(threads, std::vector<float>{1, 2, NAN, 4}), InputError);
  REQUIRE_THROWS_AS(statistics.add(threads, std::vector<float>{1, INFINITY, 3, 4}), InputError);
  REQUIRE_THROWS_AS(find_grid(std::vector<float>{1, NAN}, {}), InputError);
  REQUIRE_THROWS_AS(find_grid(std::vector<float>{1e9F}, {}), InputError);
}

TEST_CASE("the Hessian is 2 / N times the sum of x x^T over all batches") {
  const std::vector<float> first{1, 2, 3, 4}, second{5, -6};  // two tokens, then one, of two in-features
  kernels::cpu::ThreadPool threads(1);
  InputStatistics statistics(2);
  statistics.add(threads, first);
  statistics.add(threads, second);
  const std::vector<float> expected{35 * 2 / 3.0F, -16 * 2 / 3.0F, -16 * 2 / 3.0F, 56 * 2 / 3.0F};
  const std::vector<float> actual = statistics.hessian();
  for (std::size_t i = 0; i < 4; ++i) REQUIRE_THAT(actual[i], WithinRel(expected[i], 1e-6F));
  REQUIRE(statistics.largest()[0] == 5);
  REQUIRE(statistics.largest()[1] == 6);
}

TEST_CASE("grids: scales that F16 holds, zero points in range, errors of half a step") {
  const std::vector<float> values = random_values(256, 7);
  for (const GridKind kind : {GridKind::symmetric, GridKind::absmax, GridKind::asymmetric})
    for (const int bits : {2, 3, 4, 8}) {
      const Grid grid = find_grid(values, {.bits = bits, .kind = kind, .lowest_zero = 1});
      REQUIRE(kernels::f32_from_f16(kernels::f16_from_f32(grid.scale)) == grid.scale);
      REQUIRE(grid.zero >= 1);
      REQUIRE(grid.zero < 1 << bits);
      // Symmetric grids lack half a step at their upper end, asymmetric ones what rounding the zero point costs.
      for (const float value : values)
        REQUIRE(std::fabs(to_weight(to_integer(value, grid, bits), grid) - value) <= 1.01F * grid.scale);
    }
  const Grid positive =
      find_grid(std::vector<float>{0.5F, 1.5F}, {.bits = 4, .kind = GridKind::asymmetric, .lowest_zero = 1});
  REQUIRE(positive.zero == 1);
  REQUIRE(to_integer(1.5F, positive, 4) == 15);
  REQUIRE(find_grid(std::vector<float>{0, 0}, {.bits = 4, .kind = GridKind::absmax, .lowest_zero = 0}).scale > 0);
}

TEST_CASE("smoothing leaves the product as it was, and norms that their dtype holds") {
  constexpr int kColumns = 12;
  const std::vector<float> norm = random_values(kColumns, 11), values = random_values(5 * kColumns, 12);
  std::vector<float> largest(kColumns);
  for (std::size_t j = 0; j < kColumns; ++j) largest[j] = j == 3 ? 0.0F : 0.5F * static_cast<float>(j * j + 1);
  const std::vector<WeightMatrix> matrices{{values, 5, kColumns}};
  const std::vector<float> scales = smoothing_scales(largest, matrices, norm, Dtype::bf16, 0.5);
  std::vector<float> scaled = values;
  scale_columns(scaled, scales);
  REQUIRE(scales[3] == 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float folded = norm[i % kColumns] / scales[i % kColumns];
    REQUIRE_THAT(scaled[i] * folded, WithinRel(values[i] * norm[i % kColumns], 1e-5F));
    if (i % kColumns != 3)
      REQUIRE_THAT(kernels::f32_from_bf16(kernels::bf16_from_f32(folded)), WithinRel(folded, 1e-6F));
  }
  // alpha 0.5 meets in the middle: activations and weights of a column become equally large, within BF16's 1/256.
  const float weight_max = std::fabs(std::max({values[5], values[17], values[29], values[41], values[53]},
                                              [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
  REQUIRE_THAT(largest[5] / scales[5], WithinRel(weight_max * scales[5], 0.02F));
}

}  // namespace dculab::engine
