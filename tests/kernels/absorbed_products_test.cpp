// Products of each head with its part of kv_b_proj against the reference, for every format of weights.
#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/cpu/latent_kernels.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/quantized_matrices.hpp"

namespace dculab::kernels {
namespace {

// Small, with a rest for every vector; and DeepSeek's.
constexpr LatentSizes kFewValues{3, 40, 24, 8, 16}, kOfDeepseek{4, 512, 128, 64, 128};

// A matrix of kv_b_proj in a format, and the same as floats.
struct Projection {
  std::vector<std::byte> stored;
  std::vector<float> scales, widened;
  std::unique_ptr<PackedMatrix> packed;
  WeightView view, as_floats;

  Projection(const LatentSizes& sizes, Dtype dtype, GroupOrder order = GroupOrder::consecutive) {
    TensorSource source(5);
    const int rows = sizes.num_heads * sizes.expanded_head_dim(), columns = sizes.kv_lora_rank;
    const auto values = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    if (dtype == Dtype::int4 || dtype == Dtype::int8) {
      const QuantizedMatrix matrix = random_quantized(source, {rows, columns, bits(dtype), 8}, order);
      packed = std::make_unique<PackedMatrix>(matrix);
      view = packed->view();
      for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column) {
          const auto group = static_cast<std::size_t>(row * matrix.groups() + matrix.group(column));
          const int q = matrix.q[static_cast<std::size_t>(row * columns + column)];
          widened.push_back(matrix.scales[group] * static_cast<float>(q - matrix.zeros[group]));
        }
    } else {
      stored = source.stored(values, dtype);
      view = {stored.data(), dtype, rows};
      const int blocks = dtype == Dtype::fp8_e4m3 ? (columns - 1) / 128 + 1 : 0;
      scales = source.floats(static_cast<std::size_t>((rows - 1) / 16 + 1) * static_cast<std::size_t>(blocks));
      if (blocks > 0) view.scales = {scales.data(), 4, 7, blocks};
      for (std::size_t i = 0; i < values; ++i) {
        const std::size_t row = i / static_cast<std::size_t>(columns), column = i % static_cast<std::size_t>(columns);
        const double scale =
            blocks > 0 ? scales[row / 16 * static_cast<std::size_t>(blocks) + column / 128] / Fp8Scales::kFactor : 1.0;
        widened.push_back(static_cast<float>(reference::load_value(stored.data(), dtype, i) * scale));
      }
    }
    as_floats = {widened.data(), Dtype::f32, rows};
  }
};

// Both absorbed products of `tokens` tokens: y of absorb_k, then of absorb_v.
template <typename AbsorbK, typename AbsorbV>
std::vector<float> absorb(const LatentSizes& sizes, const WeightView& weight, const std::vector<float>& x, int first,
                          int tokens, AbsorbK&& absorb_k, AbsorbV&& absorb_v) {
  const int q_width = sizes.num_heads * sizes.qk_head_dim(), rank_width = sizes.num_heads * sizes.kv_lora_rank;
  const std::int64_t stride = std::max(q_width, rank_width) + 3;
  std::vector<float> k(static_cast<std::size_t>(tokens * sizes.num_heads * sizes.latent_width()), NAN);
  std::vector<float> v(static_cast<std::size_t>(tokens * sizes.num_heads * sizes.v_head_dim), NAN);
  AbsorbArgs args{
      .sizes = sizes, .kv_b_proj = weight, .x = x.data() + first * stride, .x_stride = stride, .num_tokens = tokens};
  args.y = k.data();
  absorb_k(args);
  args.y = v.data();
  absorb_v(args);
  k.insert(k.end(), v.begin(), v.end());
  return k;
}

void check_absorption(const LatentSizes& sizes, const Projection& weight, int tokens) {
  const auto stride = static_cast<std::size_t>(sizes.num_heads * std::max(sizes.qk_head_dim(), sizes.kv_lora_rank) + 3);
  const std::vector<float> x = TensorSource(6).floats(static_cast<std::size_t>(tokens) * stride);
  const auto expected = absorb(sizes, weight.as_floats, x, 0, tokens, reference::absorb_k, reference::absorb_v);
  for_each_vector_target([&](std::string_view target) {
    INFO(target << " " << name(weight.view.dtype) << ", " << tokens << " tokens");
    cpu::Workspace workspace;
    const auto on_cpu = [&](int num_threads, int first, int count) {
      cpu::ThreadPool threads(num_threads);
      return absorb(
          sizes, weight.view, x, first, count, [&](const AbsorbArgs& args) { cpu::absorb_k(threads, workspace, args); },
          [&](const AbsorbArgs& args) { cpu::absorb_v(threads, workspace, args); });
    };
    const std::vector<float> actual = on_cpu(2, 0, tokens);
    CHECK(largest_difference(actual, expected) <= sum_tolerance(sizes.kv_lora_rank, 8));
    CHECK(on_cpu(1, 0, tokens) == actual);
    const std::vector<float> last = on_cpu(3, tokens - 1, 1);  // alone
    const std::ptrdiff_t width = std::ptrdiff_t{sizes.num_heads} * sizes.latent_width();
    CHECK(std::equal(last.begin(), last.begin() + width, actual.begin() + (tokens - 1) * width));
    CHECK(std::equal(last.begin() + width, last.end(), actual.end() - sizes.num_heads * sizes.v_head_dim));
  });
}

}  // namespace

TEST_CASE("latents: absorbed products agree with the reference, for any batch and any number of threads") {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::int4, Dtype::int8}) {
    const Projection small(kFewValues, dtype);
    for (const int tokens : {1, 4, 9}) check_absorption(kFewValues, small, tokens);
    check_absorption(kOfDeepseek, Projection(kOfDeepseek, dtype), 2);
  }
  check_absorption(kFewValues, Projection(kFewValues, Dtype::int4, GroupOrder::act_order), 3);
  check_absorption(kFewValues, Projection(kFewValues, Dtype::int8, GroupOrder::act_order), 3);
}

TEST_CASE("latents: weights of other heads are refused") {
  const Projection projection(kOfDeepseek, Dtype::f32);
  cpu::ThreadPool threads(1);
  cpu::Workspace workspace;
  CHECK_THROWS_AS(cpu::absorb_k(threads, workspace, {.sizes = kFewValues, .kv_b_proj = projection.view}),
                  std::invalid_argument);
}

}  // namespace dculab::kernels
