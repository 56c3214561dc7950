// Do the GPU kernels choose the reference's experts, sort their rows, and add up what they give?
#include <cmath>
#include <limits>
#include <set>

#include "core/error.hpp"
#include "tests/kernels/gpu/routed_tokens.hpp"

namespace dculab::kernels::gpu {
namespace {

constexpr auto kSigmoid = RouterScoring::sigmoid;

// Mixtral, Qwen3, DeepSeek-V2 and DeepSeek-V3 as they are; odd ones; the most there may be.
const std::vector<RouterCase> kRouters = {
    {.rule = {.num_experts = 8, .experts_per_token = 2}, .num_tokens = 5},
    {.rule = {.num_experts = 128, .experts_per_token = 8}, .num_tokens = 37},
    {.rule = {.num_experts = 128, .experts_per_token = 8, .normalized = false}, .num_tokens = 3, .logits = Dtype::f16},
    {.rule = {.num_experts = 160,
              .experts_per_token = 6,
              .normalized = false,
              .scaling = 16.0F,
              .num_groups = 8,
              .groups_per_token = 3},
     .num_tokens = 9},
    {.rule = {.num_experts = 256,
              .experts_per_token = 8,
              .scoring = kSigmoid,
              .scaling = 2.5F,
              .num_groups = 8,
              .groups_per_token = 4},
     .num_tokens = 70,
     .has_bias = true},
    {.rule = {.num_experts = 12, .experts_per_token = 3, .scoring = kSigmoid, .num_groups = 12, .groups_per_token = 5},
     .num_tokens = 6,
     .has_bias = true},
    {.rule = {.num_experts = 1, .experts_per_token = 1}, .num_tokens = 2},
    {.rule = {.num_experts = 7, .experts_per_token = 7, .scoring = kSigmoid, .normalized = false}, .num_tokens = 4},
    {.rule = {.num_experts = 512, .experts_per_token = 32, .num_groups = 32, .groups_per_token = 16},
     .num_tokens = 41}};

// The tiles of the reference's rows, then empty ones.
std::vector<std::int32_t> expected_tiles(const RoutedTokens& routed, const ExpertPlan& plan) {
  std::vector<std::int32_t> tiles;
  for (std::size_t expert = 0; expert + 1 < routed.first_rows.size(); ++expert)
    for (int row = routed.first_rows[expert]; row < routed.first_rows[expert + 1]; row += plan.rows)
      tiles.insert(tiles.end(), {static_cast<std::int32_t>(expert), row});
  REQUIRE(std::ssize(tiles) <= 2 * plan.tiles);
  while (std::ssize(tiles) < 2 * plan.tiles) tiles.insert(tiles.end(), {-1, 0});
  return tiles;
}

void check_choices(const DeviceChoices& choices, const RoutedTokens& routed, const ExpertPlan& plan) {
  CHECK(choices.experts.read<std::int32_t>() == routed.experts);
  CHECK(choices.choice_rows.read<std::int32_t>() == routed.choice_rows);
  CHECK(choices.row_tokens.read<std::int32_t>() == routed.row_tokens);
  CHECK(choices.first_rows.read<std::int32_t>() == routed.first_rows);
  CHECK(choices.tiles.read<std::int32_t>() == expected_tiles(routed, plan));
  CHECK(choices.bad_tokens.read<std::int32_t>() == std::vector{routed.bad_tokens});
  // Logits differ by 20 at most, and that much times the rounding of f32 is the error of an exponential, twice; a sum
  // has 16 additions in a lane and 6 across the wave, twice; 10 other roundings.
  const auto weights = choices.weights.read<float>();
  for (std::size_t i = 0; i < weights.size(); ++i)
    REQUIRE(std::abs(weights[i] - routed.weights[i]) <= (2 * 20 + 2 * 22 + 10) * kUlp * routed.weights[i]);
}

std::vector<std::byte> bytes_of_floats(const std::vector<float>& values) {
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(float)};
}

}  // namespace

TEST_CASE("GPU route_tokens chooses and sorts as the reference does", "[gpu][experts]") {
  const std::size_t which = GENERATE(range(std::size_t{0}, kRouters.size()));
  const RouterCase& router = kRouters[which];
  CAPTURE(which);
  TensorSource source(31);
  const RoutedTokens routed(router, source);
  const ExpertPlan plan = plan_expert_matmul(routed.num_rows(), router.rule.num_experts, Dtype::f16);
  for_each_device([&](Device& device) { check_choices(DeviceChoices(device, routed, plan), routed, plan); });
}

TEST_CASE("GPU route_tokens sorts thousands of rows, most of them of one expert", "[gpu][experts]") {
  const RouterCase router{.rule = {.num_experts = 6, .experts_per_token = 2}, .num_tokens = 1500};
  TensorSource source(32);
  std::vector<float> logits = source.floats(std::size_t{6} * 1500);
  for (std::size_t token = 0; token < 1500; ++token) {
    logits[6 * token + 4] = 5 + 0.001F * static_cast<float>(token % 7);  // chosen by every token
    logits[6 * token + 1] = -9;                                          // chosen by none
  }
  const RoutedTokens routed(router, bytes_of_floats(logits), {});
  REQUIRE(routed.first_rows[5] - routed.first_rows[4] == 1500);
  const ExpertPlan plan = plan_expert_matmul(routed.num_rows(), 6, Dtype::f16);
  for_each_device([&](Device& device) { check_choices(DeviceChoices(device, routed, plan), routed, plan); });
}

TEST_CASE("GPU route_tokens gives ties to the lower index, of experts and of groups", "[gpu][experts]") {
  const int groups = GENERATE(1, 4);
  const bool has_bias = GENERATE(false, true);
  CAPTURE(groups, has_bias);
  const RouterCase router{.rule = {.num_experts = 80,
                                   .experts_per_token = 5,
                                   .scoring = kSigmoid,
                                   .num_groups = groups,
                                   .groups_per_token = (groups + 1) / 2},
                          .num_tokens = 3,
                          .has_bias = has_bias};
  std::vector<float> logits(240);
  for (std::size_t i = 0; i < 240; ++i) logits[i] = static_cast<float>(i % 3) * (i < 80 ? 0.0F : 1.0F);
  const RoutedTokens routed(router, bytes_of_floats(logits), std::vector<float>(has_bias ? 80 : 0, 0.25F));
  CHECK(std::vector(routed.experts.begin(), routed.experts.begin() + 5) == std::vector{0, 1, 2, 3, 4});
  const ExpertPlan plan = plan_expert_matmul(15, 80, Dtype::f16);
  for_each_device([&](Device& device) { check_choices(DeviceChoices(device, routed, plan), routed, plan); });
}

TEST_CASE("GPU route_tokens counts tokens with NaN and infinite logits, and gives them experts still",
          "[gpu][experts]") {
  const bool has_bias = GENERATE(false, true);
  const RouterCase router{.rule = {.num_experts = 16,
                                   .experts_per_token = 3,
                                   .scoring = has_bias ? kSigmoid : RouterScoring::softmax,
                                   .num_groups = 4,
                                   .groups_per_token = 1},
                          .num_tokens = 6,
                          .has_bias = has_bias};
  TensorSource source(33);
  std::vector<float> logits = source.floats(96);
  logits[5] = NAN;
  logits[40] = INFINITY;
  logits[41] = INFINITY;
  logits[79] = -INFINITY;
  for (std::size_t i = 80; i < 96; ++i) logits[i] = NAN;
  const RoutedTokens routed(router, bytes_of_floats(logits), source.floats(has_bias ? 16 : 0));
  REQUIRE(routed.bad_tokens == 4);
  const ExpertPlan plan = plan_expert_matmul(18, 16, Dtype::f16);
  for_each_device([&](Device& device) {
    const DeviceChoices choices(device, routed, plan);
    CHECK(choices.is_bad.read<std::int32_t>() == std::vector{1, 0, 1, 0, 1, 1});
    device.route_tokens(choices.args);
    CHECK(choices.bad_tokens.read<std::int32_t>() == std::vector{8});  // of two steps
    const auto experts = choices.experts.read<std::int32_t>();
    for (std::size_t token = 0; token < 6; ++token) {
      const std::set<std::int32_t> chosen(&experts[3 * token], &experts[3 * token] + 3);
      CHECK(chosen.size() == 3);
      CHECK((*chosen.begin() >= 0 && *chosen.rbegin() < 16));
    }
  });
}

TEST_CASE("GPU combine_experts agrees with the reference, beside shared experts too", "[gpu][experts]") {
  enum class Shared : std::uint8_t { none, plain, gated };
  const auto dtype = GENERATE(Dtype::f32, Dtype::f16);
  const auto shared = GENERATE(Shared::none, Shared::plain, Shared::gated);
  const auto [width, per_token] = GENERATE(std::pair{1, 1}, std::pair{65, 3}, std::pair{2056, 8}, std::pair{4100, 2});
  CAPTURE(name(dtype), static_cast<int>(shared), width, per_token);
  const RouterCase router{.rule = {.num_experts = 9, .experts_per_token = per_token}, .num_tokens = 3};
  TensorSource source(34);
  const RoutedTokens routed(router, source);
  const auto count = static_cast<std::size_t>(3 * width);
  const auto y = source.stored(static_cast<std::size_t>(routed.num_rows() * width), dtype);
  const auto shared_rows = source.stored(count, dtype);
  const auto gate = source.floats(3);
  const auto wide_y = widen(y, dtype);
  auto expected = widen(shared_rows, dtype);
  const float one = 1;
  reference::combine_experts({.y = wide_y.data(),
                              .choice_rows = routed.choice_rows.data(),
                              .weights = routed.weights.data(),
                              .out = expected.data(),
                              .num_tokens = 3,
                              .width = width,
                              .experts_per_token = per_token,
                              .has_shared = shared != Shared::none,
                              .x = gate.data(),
                              .shared_gate = {shared == Shared::gated ? &one : nullptr, Dtype::f32, 1},
                              .gate_width = 1});
  for_each_device([&](Device& device) {
    const DeviceTensor device_y(device, y), rows(device, routed.choice_rows), weights(device, routed.weights);
    const DeviceTensor out(device, shared_rows), device_gate(device, gate);
    device.combine_experts({.y = {device_y.as(), dtype},
                            .choice_rows = rows.as<std::int32_t>(),
                            .weights = weights.as<float>(),
                            .shared = {shared == Shared::none ? nullptr : out.as(), dtype},
                            .shared_gate = {shared == Shared::gated ? device_gate.as() : nullptr, Dtype::f32},
                            .out = {out.as(), dtype},
                            .num_tokens = 3,
                            .width = width,
                            .experts_per_token = per_token});
    const auto got = out.read_numbers(dtype);
    // Up to nine terms of at most 6 standard deviations, whose factors are 1 at most; 6 ulp of the sigmoid.
    const double of_sum = (9 + 6) * kUlp * (per_token + 1) * 6;
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(std::abs(got[i] - expected[i]) <=
              of_sum + rounding(dtype) * std::abs(expected[i]) + smallest_step(dtype));
  });
}

TEST_CASE("GPU kernels of experts refuse what none is compiled for", "[gpu][experts]") {
  const auto device = open_host_device({});
  const auto refuses = [&](const RouterRule& rule, const std::string& message) {
    CHECK_THROWS_WITH(device->route_tokens({.rule = rule}), ContainsSubstring(message));
  };
  refuses({.num_experts = 513, .experts_per_token = 1}, "513 experts has no GPU kernel; there is one for 1 to 512");
  refuses({.num_experts = 8, .experts_per_token = 9},
          "9 experts of a token has no GPU kernel; there is one for 1 to 8");
  refuses({.num_experts = 64, .experts_per_token = 33}, "1 to 32");
  refuses({.num_experts = 64, .experts_per_token = 2, .num_groups = 64}, "64 groups of experts");
  refuses({.num_experts = 10, .experts_per_token = 2, .num_groups = 4}, "must be a multiple of 4");
  refuses({.num_experts = 8, .experts_per_token = 2, .num_groups = 2, .groups_per_token = 3}, "3 groups of a token");
  refuses({.num_experts = 8, .experts_per_token = 3, .num_groups = 4}, "chooses 3 of 2 experts");
  CHECK_THROWS_AS(device->route_tokens({.logits = {nullptr, Dtype::bf16}}), InputError);
  CHECK_THROWS_AS(device->combine_experts({.y = {nullptr, Dtype::bf16}}), InputError);
}

TEST_CASE("plans of expert products have room for the rows of any choice", "[gpu][experts]") {
  CHECK(plan_expert_matmul(8, 128, Dtype::f16).rows == 1);  // a token
  CHECK(plan_expert_matmul(8, 128, Dtype::f16).tiles == 8);
  CHECK(plan_expert_matmul(2, 8, Dtype::f16).rows == 1);
  CHECK(plan_expert_matmul(16, 8, Dtype::f16).rows == 4);      // two rows of an expert on average
  CHECK(plan_expert_matmul(512, 128, Dtype::f16).rows == 8);   // four
  CHECK(plan_expert_matmul(513, 128, Dtype::f16).rows == 32);  // more
  CHECK(plan_expert_matmul(16384, 128, Dtype::f16).rows == 128);
  CHECK(plan_expert_matmul(16384, 128, Dtype::int4).rows == 64);
  for (const int rows : {1, 7, 100, 999, 5000})
    for (const int experts : {1, 8, 60, 256}) {
      const ExpertPlan plan = plan_expert_matmul(rows, experts, Dtype::f16);
      const int touched = std::min(rows, experts);
      // One row for each expert that is touched but the first, which has the rest: no choice leads to more tiles.
      const int most = touched - 1 + (rows - touched + 1 + plan.rows - 1) / plan.rows;
      CAPTURE(rows, experts, plan.rows);
      CHECK(plan.tiles >= most);
      CHECK(plan.tiles <= rows);
    }
}

}  // namespace dculab::kernels::gpu
