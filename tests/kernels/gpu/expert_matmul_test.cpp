// Do the GPU's products of experts agree with the reference, and leave alone the weights of experts without a token?
#include <cmath>

#include "core/error.hpp"
#include "kernels/number_format.hpp"
#include "tests/kernels/gpu/matmul_cases.hpp"
#include "tests/kernels/gpu/routed_tokens.hpp"
#include "tests/kernels/gpu/weight_loads.hpp"

namespace dculab::kernels::gpu {
namespace {

struct ExpertShape {
  int num_tokens, num_experts, per_token, n, k;

  [[nodiscard]] RouterCase router() const {
    return {.rule = {.num_experts = num_experts, .experts_per_token = per_token}, .num_tokens = num_tokens};
  }
  [[nodiscard]] int rows() const { return num_tokens * per_token; }
  [[nodiscard]] std::size_t values() const { return static_cast<std::size_t>(rows()) * static_cast<std::size_t>(n); }
};

enum class Gather : std::uint8_t { tokens, rows };

std::size_t count_of(int a, int b, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

// Numbers of rows of x by which the reference finds them.
const std::int32_t* gathered(const RoutedTokens& routed, Gather gather) {
  return gather == Gather::tokens ? routed.row_tokens.data() : nullptr;
}

// The product of plain weights. Those of experts without a token are NaN.
class ExpertProduct {
 public:
  ExpertProduct(const ExpertShape& shape, MatmulFormats formats, Gather gather)
      : shape_(shape), formats_(formats), gather_(gather), source_(41), routed_(shape.router(), source_) {
    x_ = source_.stored(count_of(x_rows(), shape.k), formats.x);
    w_ = source_.stored(count_of(shape.num_experts, shape.n, shape.k), formats.w);
    bias_ = source_.floats(count_of(shape.num_experts, shape.n));
    const std::size_t expert_bytes = w_.size() / static_cast<std::size_t>(shape.num_experts);
    std::vector<WeightView> weights, biases;
    for (int expert = 0; expert < shape.num_experts; ++expert) {
      std::byte* first = w_.data() + static_cast<std::size_t>(expert) * expert_bytes;
      if (!is_touched(expert)) std::fill(first, first + expert_bytes, std::byte{0xFF});
      weights.push_back({first, formats.w, shape.n});
      biases.push_back({&bias_[count_of(expert, shape.n)], Dtype::f32, shape.n});
    }
    expected_.resize(shape.values());
    const auto wide_x = widen(x_, formats.x);
    ExpertMatmulArgs args;
    args.x = wide_x.data(), args.row_tokens = gathered(routed_, gather), args.first_rows = routed_.first_rows.data();
    args.weights[0] = weights.data(), args.biases[0] = biases.data(), args.y = expected_.data();
    args.num_experts = shape.num_experts, args.k = shape.k;
    reference::expert_matmul(args);
  }

  [[nodiscard]] bool is_touched(int expert) const {
    const auto at = static_cast<std::size_t>(expert);
    return routed_.first_rows[at] < routed_.first_rows[at + 1];
  }

  [[nodiscard]] std::vector<float> run(Device& device) const {
    const DeviceChoices choices(device, routed_, plan_expert_matmul(shape_.rows(), shape_.num_experts, formats_.w));
    const DeviceTensor x(device, x_), w(device, w_, OperandRole::weight), bias(device, bias_);
    const DeviceTensor y(device, bytes_of(formats_.y, shape_.values()));
    device.expert_matmul({.x = {x.as(), formats_.x},
                          .w = {w.as(), formats_.w},
                          .y = {y.as(), formats_.y},
                          .rows = choices.rows(gather_ == Gather::tokens),
                          .x_rows = x_rows(),
                          .n = shape_.n,
                          .k = shape_.k,
                          .bias = bias.as<float>()});
    return y.read_numbers(formats_.y);
  }

  // k products of size 1 summed in f32, then one rounding to the format of y.
  void check() const {
    const double of_sum = sum_tolerance(shape_.k + 1, 1.0);
    for_each_device([&](Device& device) {
      const auto got = run(device);
      for (std::size_t i = 0; i < got.size(); ++i)
        REQUIRE(std::abs(got[i] - expected_[i]) <= of_sum + rounding(formats_.y) * (std::abs(expected_[i]) + of_sum));
    });
  }

 private:
  [[nodiscard]] int x_rows() const { return gather_ == Gather::tokens ? shape_.num_tokens : shape_.rows(); }

  ExpertShape shape_;
  MatmulFormats formats_;
  Gather gather_;
  TensorSource source_;
  RoutedTokens routed_;
  std::vector<std::byte> x_, w_;
  std::vector<float> bias_, expected_;
};

constexpr MatmulFormats kFormats[] = {{Dtype::f16, Dtype::f16, Dtype::f16},  {Dtype::f16, Dtype::bf16, Dtype::f16},
                                      {Dtype::f16, Dtype::f32, Dtype::f32},  {Dtype::f32, Dtype::f16, Dtype::f32},
                                      {Dtype::f32, Dtype::bf16, Dtype::f32}, {Dtype::f32, Dtype::f32, Dtype::f32}};

// Random GPTQ matrices of all experts, one after the other.
struct StoredExperts {
  StoredExperts(TensorSource& source, const ExpertShape& shape, int group_size, bool act_order) {
    const auto groups = static_cast<std::size_t>(shape.k / group_size), n = static_cast<std::size_t>(shape.n);
    const auto experts = static_cast<std::size_t>(shape.num_experts), k = static_cast<std::size_t>(shape.k);
    const auto random_word = [&] { return static_cast<std::uint32_t>(source.engine()()); };
    qweight.resize(experts * k / 8 * n), qzeros.resize(experts * groups * n / 8), scales.resize(experts * groups * n);
    std::generate(qweight.begin(), qweight.end(), random_word);
    std::generate(qzeros.begin(), qzeros.end(), random_word);
    for (auto& scale : scales) scale = f16_from_f32(0.001F * static_cast<float>(source.integer(5, 15)));
    for (std::size_t expert = 0; act_order && expert < experts; ++expert) {
      x_perm.resize(x_perm.size() + k);
      std::iota(x_perm.end() - static_cast<std::ptrdiff_t>(k), x_perm.end(), 0);
      std::shuffle(x_perm.end() - static_cast<std::ptrdiff_t>(k), x_perm.end(), source.engine());
    }
    view = {.qweight = qweight.data(),
            .qzeros = qzeros.data(),
            .scales = scales.data(),
            .in_features = shape.k,
            .out_features = shape.n,
            .group_size = group_size,
            .zero_offset = 1};
  }

  [[nodiscard]] GptqWeightView of(int expert) const {
    GptqWeightView one = view;
    const auto groups = static_cast<std::size_t>(view.in_features / view.group_size);
    const auto at = static_cast<std::size_t>(expert), n = static_cast<std::size_t>(view.out_features);
    one.qweight += at * static_cast<std::size_t>(view.in_features) / 8 * n;
    one.qzeros += at * groups * n / 8;
    one.scales += at * groups * n;
    return one;
  }

  std::vector<std::uint32_t> qweight, qzeros;
  std::vector<std::uint16_t> scales;
  std::vector<std::int32_t> x_perm;
  GptqWeightView view;
};

// y and the sum of magnitudes of its terms, value by value.
struct Sums {
  std::vector<double> values, magnitudes;
};

Sums multiply(const RoutedTokens& routed, const StoredExperts& stored, const std::vector<float>& x, Gather gather) {
  Sums sums;
  const int k = stored.view.in_features, n = stored.view.out_features;
  for (int expert = 0; expert < routed.given.rule.num_experts; ++expert) {
    const GptqWeightView weight = stored.of(expert);
    for (int row = routed.first_rows[static_cast<std::size_t>(expert)];
         row < routed.first_rows[static_cast<std::size_t>(expert) + 1]; ++row) {
      const int token = gather == Gather::tokens ? routed.row_tokens[static_cast<std::size_t>(row)] : row;
      for (int column = 0; column < n; ++column) {
        double value = 0, magnitude = 0;
        for (int i = 0; i < k; ++i) {
          const int from = stored.x_perm.empty() ? i : stored.x_perm[count_of(expert, k) + static_cast<std::size_t>(i)];
          const double term =
              reference::gptq_weight(weight, i, column) * x[count_of(token, k) + static_cast<std::size_t>(from)];
          value += term, magnitude += std::abs(term);
        }
        sums.values.push_back(value), sums.magnitudes.push_back(magnitude);
      }
    }
  }
  return sums;
}

}  // namespace

TEST_CASE("GPU expert_matmul of a few rows agrees with the reference in all formats", "[gpu][experts]") {
  const auto shape =
      GENERATE(values<ExpertShape>({{1, 8, 2, 37, 72}, {5, 16, 2, 63, 136}, {6, 9, 3, 5, 520}, {9, 8, 3, 66, 72}}));
  const auto gather = GENERATE(Gather::tokens, Gather::rows);
  for (const MatmulFormats& formats : kFormats) {
    CAPTURE(shape.num_tokens, shape.n, shape.k, name(formats.x), name(formats.w));
    ExpertProduct(shape, formats, gather).check();
  }
}

TEST_CASE("GPU expert_matmul of many rows agrees with the reference in all formats", "[gpu][experts]") {
  // Tiles of 32, 64 and 128 rows, some full, and an expert that no token is routed to.
  const auto shape =
      GENERATE(values<ExpertShape>({{40, 8, 2, 37, 72}, {33, 3, 2, 129, 40}, {90, 2, 1, 9, 136}, {130, 2, 2, 5, 72}}));
  const auto gather = GENERATE(Gather::tokens, Gather::rows);
  for (const MatmulFormats& formats : kFormats) {
    CAPTURE(shape.num_tokens, shape.n, shape.k, name(formats.x), name(formats.w));
    ExpertProduct(shape, formats, gather).check();
  }
}

TEST_CASE("GPU expert_matmul loads the weights of chosen experts once for each tile, and no others",
          "[gpu][experts][trace]") {
  const auto shape = GENERATE(values<ExpertShape>({{1, 8, 2, 45, 1032}, {4, 16, 2, 45, 1032}, {60, 4, 1, 130, 72}}));
  CAPTURE(shape.num_tokens);
  const ExpertProduct product(shape, {Dtype::f16, Dtype::f16, Dtype::f16}, Gather::tokens);
  TensorSource source(41);
  const RoutedTokens routed(shape.router(), source);
  const int tile_rows = plan_expert_matmul(shape.rows(), shape.num_experts, Dtype::f16).rows;
  host::AddressRecorder recorder;
  const auto device = open_host_device({.wave_size = 64, .recorder = &recorder});
  (void)product.run(*device);
  const WeightLoads loads =
      weight_loads(recorder.take(tile_rows > kGemvMaxRows ? "expert_gemm_kernel" : "expert_gemv_kernel"));
  CHECK(loads.is_sixteen_per_lane);
  const std::size_t expert_bytes = count_of(shape.n, shape.k) * 2;
  for (int expert = 0; expert < shape.num_experts; ++expert) {
    const auto at = static_cast<std::size_t>(expert);
    const int tiles = (routed.first_rows[at + 1] - routed.first_rows[at] + tile_rows - 1) / tile_rows;
    const auto first = loads.of_byte.begin() + static_cast<std::ptrdiff_t>(at * expert_bytes);
    CHECK(
        std::all_of(first, first + static_cast<std::ptrdiff_t>(expert_bytes), [&](int each) { return each == tiles; }));
  }
}

TEST_CASE("GPU expert_gptq_matmul agrees with the reference", "[gpu][experts]") {
  // Tiles of 1, 2, 4, 8, 32 and 64 rows.
  const auto shape = GENERATE(values<ExpertShape>({{1, 8, 2, 40, 64},
                                                   {3, 8, 2, 32, 2080},
                                                   {7, 8, 2, 40, 128},
                                                   {11, 8, 3, 72, 64},
                                                   {40, 8, 2, 136, 64},
                                                   {110, 3, 1, 40, 128}}));
  const int group_size = GENERATE(32, 0);  // 0: all in-features
  const auto [gather, act_order, dtype] =
      GENERATE(std::tuple{Gather::tokens, false, Dtype::f16}, std::tuple{Gather::rows, true, Dtype::f16},
               std::tuple{Gather::tokens, true, Dtype::f32}, std::tuple{Gather::rows, false, Dtype::f32});
  CAPTURE(shape.num_tokens, shape.n, shape.k, group_size, act_order, name(dtype));
  TensorSource source(42);
  const RoutedTokens routed(shape.router(), source);
  const StoredExperts stored(source, shape, group_size == 0 ? shape.k : group_size, act_order);
  const int x_rows = gather == Gather::tokens ? shape.num_tokens : shape.rows();
  const auto x = source.stored(count_of(x_rows, shape.k), dtype);
  const Sums expected = multiply(routed, stored, widen(x, dtype), gather);
  const ExpertPlan plan = plan_expert_matmul(shape.rows(), shape.num_experts, Dtype::int4);
  // As of gptq_matmul: the longest chain of roundings, and weights that the GEMM of halves rounds.
  const double error = (shape.k + 24) * kUlp + (dtype == Dtype::f16 && !plan.is_gemv() ? 0x1p-11 : 0.0);
  for_each_device([&](Device& device) {
    const DeviceChoices choices(device, routed, plan);
    const DeviceTensor device_x(device, x), qweight(device, stored.qweight), qzeros(device, stored.qzeros);
    const DeviceTensor scales(device, stored.scales), x_perm(device, stored.x_perm);
    const DeviceTensor y(device, bytes_of(dtype, shape.values()));
    GptqWeightView weight = stored.view;
    weight.qweight = qweight.as<std::uint32_t>(), weight.qzeros = qzeros.as<std::uint32_t>();
    weight.scales = scales.as<std::uint16_t>();
    device.expert_gptq_matmul({.x = {device_x.as(), dtype},
                               .weight = weight,
                               .x_perm = act_order ? x_perm.as<std::int32_t>() : nullptr,
                               .y = {y.as(), dtype},
                               .rows = choices.rows(gather == Gather::tokens),
                               .x_rows = x_rows});
    const auto got = y.read_numbers(dtype);
    for (std::size_t i = 0; i < got.size(); ++i)
      REQUIRE(std::abs(got[i] - expected.values[i]) <=
              error * expected.magnitudes[i] + rounding(dtype) * std::abs(expected.values[i]) + smallest_step(dtype));
  });
}

TEST_CASE("GPU products of experts refuse what they have no kernel for", "[gpu][experts]") {
  const auto device = open_host_device({});
  CHECK_THROWS_WITH(device->expert_matmul({.n = 8, .k = 12}), ContainsSubstring("12 in-features has no GPU kernel"));
  CHECK_THROWS_WITH(device->expert_matmul({.w = {nullptr, Dtype::int8}, .n = 8, .k = 16}),
                    ContainsSubstring("weights of expert_matmul in int8"));
  CHECK_THROWS_WITH(device->expert_matmul({.x_rows = 1 << 20, .n = 8, .k = 4096}),
                    ContainsSubstring("2^30 values of x at most"));
  CHECK_THROWS_WITH(device->expert_gptq_matmul({.weight = {.in_features = 40, .out_features = 8, .group_size = 40}}),
                    ContainsSubstring("multiples of 32"));
}

}  // namespace dculab::kernels::gpu
