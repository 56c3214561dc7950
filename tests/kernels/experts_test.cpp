// Mixtures of experts: the router's choice, rows sorted by expert, products of the experts that have rows, and sums.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "kernels/cpu/expert_kernels.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/quantized_matrices.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels {
namespace {

using Index = std::vector<std::int32_t>;

std::size_t size(int count) { return static_cast<std::size_t>(count); }

struct Choices {
  Index experts, choice_rows, row_tokens, first_rows;
  std::vector<float> weights;
  std::int32_t bad_tokens = -1;

  Choices(int tokens, const RouterRule& rule)
      : experts(size(tokens * rule.experts_per_token), -1),
        choice_rows(experts),
        row_tokens(experts),
        first_rows(size(rule.num_experts + 1), -1),
        weights(experts.size(), NAN) {}

  [[nodiscard]] ExpertChoices view() {
    return {experts.data(), weights.data(), choice_rows.data(), row_tokens.data(), first_rows.data()};
  }
};

enum class Router : std::uint8_t { cpu, reference };

Choices route(const std::vector<float>& logits, const RouterRule& rule, const std::vector<float>& bias = {},
              Router router = Router::cpu, int num_threads = 2) {
  const int tokens = static_cast<int>(logits.size()) / rule.num_experts;
  Choices choices(tokens, rule);
  const RouteTokensArgs args{
      logits.data(), bias.empty() ? nullptr : bias.data(), rule, choices.view(), &choices.bad_tokens, tokens};
  if (router == Router::reference) {
    reference::route_tokens(args);
    return choices;
  }
  cpu::ThreadPool threads(num_threads);
  cpu::Workspace workspace;
  cpu::route_tokens(threads, workspace, args);
  return choices;
}

}  // namespace

TEST_CASE("a router takes the best experts, of equal ones the lower, and weighs them by the softmax") {
  const RouterRule rule{.num_experts = 5, .experts_per_token = 3};
  for (const Router router : {Router::cpu, Router::reference}) {
    const Choices choices = route({0, std::log(2.0F), 0, std::log(4.0F), 0, -1, -1, -1, -1, -1}, rule, {}, router);
    CHECK(choices.experts == Index{3, 1, 0, 0, 1, 2});
    const std::vector<float> expected{4.0F / 7, 2.0F / 7, 1.0F / 7, 1.0F / 3, 1.0F / 3, 1.0F / 3};
    CHECK(largest_difference(choices.weights, expected) < 1e-6);
    CHECK(choices.bad_tokens == 0);
    RouterRule plain = rule;
    plain.normalized = false, plain.scaling = 2;
    const Choices all = route({0, std::log(2.0F), 0, std::log(4.0F), 0}, plain, {}, router);
    CHECK(largest_difference(all.weights, std::vector<float>{8.0F / 9, 4.0F / 9, 2.0F / 9}) < 1e-6);
  }
}

TEST_CASE("a router with sigmoids weighs by them, and a correction bias changes the choice alone") {
  const std::vector<float> logits{2, 1, 0, -1};
  const auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  RouterRule rule{.num_experts = 4, .experts_per_token = 2, .scoring = RouterScoring::sigmoid, .scaling = 2.5F};
  for (const Router router : {Router::cpu, Router::reference}) {
    const Choices plain = route(logits, rule, {}, router);
    CHECK(plain.experts == Index{0, 1});
    const float sum = sigmoid(2) + sigmoid(1);
    CHECK(largest_difference(plain.weights, std::vector<float>{2.5F * sigmoid(2) / sum, 2.5F * sigmoid(1) / sum}) <
          1e-6);
    const Choices biased = route(logits, rule, {0, -1, 0, 1}, router);
    CHECK(biased.experts == Index{3, 0});
    const float other = sigmoid(-1) + sigmoid(2);
    CHECK(largest_difference(biased.weights,
                             std::vector<float>{2.5F * sigmoid(-1) / other, 2.5F * sigmoid(2) / other}) < 1e-6);
  }
  rule.normalized = false;
  // Sigmoids that round to 1 are no ties without a bias.
  CHECK(route({30, 40, 20, 50}, rule).experts == Index{3, 1});
  CHECK(route({30, 40, 20, 50}, rule, {0, 0, 0, 0}).experts == Index{0, 1});
}

TEST_CASE("of groups the one with the best expert counts, with a correction bias the one with the best two") {
  const std::vector<float> logits{3, -9, 2, 1, -5, -5};
  RouterRule rule{.num_experts = 6, .experts_per_token = 2, .scoring = RouterScoring::sigmoid};
  rule.num_groups = 3;
  for (const Router router : {Router::cpu, Router::reference}) {
    CHECK(route(logits, rule, {}, router).experts == Index{0, 1});
    CHECK(route(logits, rule, std::vector<float>(6, 0.0F), router).experts == Index{2, 3});
    rule.groups_per_token = 2;
    CHECK(route(logits, rule, {}, router).experts == Index{0, 2});
    CHECK(route({1, 1, 1, 1, 1, 1}, rule, std::vector<float>(6, 0.0F), router).experts == Index{0, 1});
    rule.groups_per_token = 1;
  }
  // Groups of one expert.
  rule = {.num_experts = 3, .experts_per_token = 2, .num_groups = 3, .groups_per_token = 2};
  CHECK(route({1, 3, 2}, rule, {0.1F, 0.2F, 0.3F}).experts == Index{1, 2});
}

TEST_CASE("a token whose logits are not finite is counted, and its choices are different experts") {
  const RouterRule rule{.num_experts = 4, .experts_per_token = 3, .num_groups = 2, .groups_per_token = 2};
  for (const Router router : {Router::cpu, Router::reference})
    for (const float wrong : {NAN, INFINITY, -INFINITY}) {
      const Choices choices = route({1, 2, 3, 4, 1, wrong, 3, 4, 4, 3, 2, 1}, rule, {}, router);
      CHECK(choices.bad_tokens == 1);
      CHECK(Index(choices.experts.begin() + 3, choices.experts.begin() + 6) == Index{0, 1, 2});
      CHECK(Index(choices.experts.begin() + 6, choices.experts.end()) == Index{0, 1, 2});
      CHECK(choices.first_rows.back() == 9);
    }
}

TEST_CASE("routers choose and sort as the reference does, for any number of threads") {
  TensorSource source(11);
  for (const auto& [experts, per_token, groups, kept] :
       {std::tuple{8, 2, 1, 1}, {60, 4, 1, 1}, {128, 8, 1, 1}, {64, 6, 8, 3}, {256, 8, 8, 4}, {1, 1, 1, 1}})
    for (const RouterScoring scoring : {RouterScoring::softmax, RouterScoring::sigmoid})
      for (const bool corrected : {false, true}) {
        RouterRule rule{experts, per_token, scoring, corrected, 1.5F, groups, kept};
        const std::vector<float> logits = source.floats(size(experts * 137));
        const std::vector<float> bias = corrected ? source.floats(size(experts), 0.1F) : std::vector<float>();
        const Choices expected = route(logits, rule, bias, Router::reference);
        for (const int threads : {1, 3}) {
          INFO(experts << " experts, " << groups << " groups, " << threads << " threads");
          const Choices choices = route(logits, rule, bias, Router::cpu, threads);
          CHECK(choices.experts == expected.experts);
          CHECK(choices.choice_rows == expected.choice_rows);
          CHECK(choices.row_tokens == expected.row_tokens);
          CHECK(choices.first_rows == expected.first_rows);
          CHECK(largest_difference(choices.weights, expected.weights) < 1e-6);
        }
      }
}

TEST_CASE("rows are sorted by expert and then by token") {
  const RouterRule rule{.num_experts = 3, .experts_per_token = 2};
  const Choices choices = route({0, 1, 2, 2, 0, 1, 0, 2, 1}, rule);  // {2, 1}, {0, 2}, {1, 2}
  CHECK(choices.first_rows == Index{0, 1, 3, 6});
  CHECK(choices.row_tokens == Index{1, 0, 2, 0, 1, 2});
  CHECK(choices.choice_rows == Index{3, 1, 0, 4, 2, 5});
}

TEST_CASE("a rule that gives a token more experts than there are is refused") {
  CHECK_THROWS_AS(route({1, 2}, {.num_experts = 2, .experts_per_token = 3}), std::invalid_argument);
  CHECK_THROWS_AS(route({1, 2, 3, 4}, {.num_experts = 4, .experts_per_token = 3, .num_groups = 2}),
                  std::invalid_argument);
  CHECK_THROWS_AS(route({1, 2, 3, 4}, {.num_experts = 4, .experts_per_token = 1, .num_groups = 3}),
                  std::invalid_argument);
}

TEST_CASE("products of experts agree with the reference, and do not read experts without rows") {
  cpu::ThreadPool threads(2);
  constexpr int kExperts = 5, kTokens = 40, kK = 72, kRows = 24;
  for (const Dtype dtype : kStoredDtypes) {
    TensorSource source(5);
    const std::vector<float> x = source.floats(kTokens * kK), bias = source.floats(kExperts * kRows);
    const std::vector<std::byte> gate = source.stored(kExperts * kRows * kK, dtype),
                                 up = source.stored(kExperts * kRows * kK, dtype);
    // No token goes to expert 3; those of expert 0 are neighbours, as is the one of expert 4.
    const Index row_tokens{5, 6, 7, 0, 3, 9, 39, 1, 2, 4, 38, 17}, first_rows{0, 3, 7, 11, 11, 12};
    std::vector<WeightView> gates, ups, biases;
    for (int expert = 0; expert < kExperts; ++expert) {
      const auto offset = size(expert * kRows * kK) * size(bits(dtype) / 8);
      const bool has_rows = expert != 3;
      gates.push_back({has_rows ? gate.data() + offset : nullptr, dtype, kRows});
      ups.push_back({has_rows ? up.data() + offset : nullptr, dtype, kRows});
      biases.push_back({bias.data() + expert * kRows, Dtype::f32, kRows});
    }
    for (const bool gathers : {false, true}) {
      std::vector<float> expected(row_tokens.size() * 2 * kRows), y(expected.size());
      ExpertMatmulArgs args;
      args.x = x.data(), args.row_tokens = gathers ? row_tokens.data() : nullptr, args.first_rows = first_rows.data();
      args.weights = {gates.data(), ups.data(), nullptr}, args.biases = {biases.data(), nullptr, nullptr};
      args.num_experts = kExperts, args.num_weights = 2, args.k = kK;
      args.y = expected.data();
      reference::expert_matmul(args);
      args.y = y.data();
      for_each_vector_target([&](std::string_view target) {
        INFO(target << " " << name(dtype));
        cpu::Workspace workspace, gathered;
        std::ranges::fill(y, NAN);
        cpu::expert_matmul(threads, workspace, gathered, args);
        CHECK(largest_difference(y, expected) < sum_tolerance(kK, 3));
      });
    }
  }
}

TEST_CASE("a row of a quantized expert has the same bits in any company") {
  constexpr int kExperts = 3, kTokens = 33, kK = 64, kRows = 40;
  TensorSource source(6);
  std::vector<std::unique_ptr<PackedMatrix>> packed;
  std::vector<WeightView> weights;
  for (int expert = 0; expert < kExperts; ++expert) {
    packed.push_back(std::make_unique<PackedMatrix>(
        random_quantized(source, {kRows, kK, 4, 32}, expert == 1 ? GroupOrder::act_order : GroupOrder::consecutive)));
    weights.push_back(packed.back()->view());
  }
  const std::vector<float> x = source.floats(kTokens * kK);
  const auto product = [&](const Index& row_tokens, const Index& first_rows, int num_threads, ActivationMode mode) {
    cpu::ThreadPool threads(num_threads);
    cpu::Workspace workspace, gathered;
    std::vector<float> y(row_tokens.size() * kRows);
    ExpertMatmulArgs args;
    args.x = x.data(), args.row_tokens = row_tokens.data(), args.first_rows = first_rows.data();
    args.weights[0] = weights.data(), args.y = y.data();
    args.num_experts = kExperts, args.k = kK, args.activations = mode;
    cpu::expert_matmul(threads, workspace, gathered, args);
    return y;
  };
  Index all(kTokens);
  std::iota(all.begin(), all.end(), 0);
  for (const ActivationMode mode : {ActivationMode::exact, ActivationMode::int8})
    for (int expert = 0; expert < kExperts; ++expert) {
      Index first_rows(kExperts + 1, 0);
      std::fill(first_rows.begin() + expert + 1, first_rows.end(), kTokens);
      const std::vector<float> together = product(all, first_rows, 2, mode);
      std::fill(first_rows.begin() + expert + 1, first_rows.end(), 1);
      for (const int token : {0, 7, 32}) {
        const std::vector<float> alone = product({token}, first_rows, 1, mode);
        CHECK(std::equal(alone.begin(), alone.end(), together.begin() + token * kRows));
      }
    }
}

TEST_CASE("combine_experts agrees with the reference, with shared experts and their gate") {
  cpu::ThreadPool threads(2);
  for (const auto& [tokens, width, per_token] : {std::tuple{1, 8, 1}, {7, 67, 2}, {300, 256, 8}})
    for (const std::optional<Dtype> gate_dtype :
         {std::optional<Dtype>(), std::optional(Dtype::f32), std::optional(Dtype::f16), std::optional(Dtype::bf16)})
      for (const bool shared : {false, true}) {
        if (gate_dtype && !shared) continue;
        TensorSource source(3);
        const std::vector<float> y = source.floats(size(tokens * per_token * width)),
                                 x = source.floats(size(tokens * 40)), before = source.floats(size(tokens * width));
        const std::vector<float> weights = source.floats(size(tokens * per_token));
        const std::vector<std::byte> gate = source.stored(40, gate_dtype.value_or(Dtype::f32), 0.3F);
        Index rows(size(tokens * per_token));
        std::iota(rows.begin(), rows.end(), 0);
        std::shuffle(rows.begin(), rows.end(), source.engine());
        std::vector<float> expected = before, out;
        CombineExpertsArgs args;
        args.y = y.data(), args.choice_rows = rows.data(), args.weights = weights.data(), args.out = expected.data();
        args.num_tokens = tokens, args.width = width, args.experts_per_token = per_token, args.has_shared = shared;
        if (gate_dtype) args.x = x.data(), args.shared_gate = {gate.data(), *gate_dtype, 1}, args.gate_width = 40;
        reference::combine_experts(args);
        for_each_vector_target([&](std::string_view target) {
          INFO(target << " " << tokens << " tokens");
          out = before;
          args.out = out.data();
          cpu::combine_experts(threads, args);
          CHECK(largest_difference(out, expected) < 2e-5);
        });
      }
}

}  // namespace dculab::kernels
