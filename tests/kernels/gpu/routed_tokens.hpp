// The choices of a mixture of experts as the reference has them, and as a device makes them.
#pragma once

#include <vector>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {

struct RouterCase {
  RouterRule rule;
  int num_tokens = 1;
  bool has_bias = false;
  Dtype logits = Dtype::f32;
};

// Random logits, and the reference's choices by them.
class RoutedTokens {
 public:
  RoutedTokens(const RouterCase& routed, TensorSource& source)
      : RoutedTokens(
            routed,
            source.stored(static_cast<std::size_t>(routed.num_tokens * routed.rule.num_experts), routed.logits, 2.0F),
            routed.has_bias ? source.floats(static_cast<std::size_t>(routed.rule.num_experts), 0.1F)
                            : std::vector<float>()) {}
  RoutedTokens(const RouterCase& routed, std::vector<std::byte> given_logits, std::vector<float> given_bias)
      : given(routed), logits(std::move(given_logits)), bias(std::move(given_bias)) {
    const auto rows = static_cast<std::size_t>(num_rows());
    experts.resize(rows), choice_rows.resize(rows), row_tokens.resize(rows), weights.resize(rows);
    first_rows.resize(static_cast<std::size_t>(given.rule.num_experts) + 1);
    const std::vector<float> wide = widen(logits, given.logits);
    reference::route_tokens(
        {.logits = wide.data(),
         .correction_bias = bias.empty() ? nullptr : bias.data(),
         .rule = given.rule,
         .choices = {experts.data(), weights.data(), choice_rows.data(), row_tokens.data(), first_rows.data()},
         .bad_tokens = &bad_tokens,
         .num_tokens = given.num_tokens});
  }

  [[nodiscard]] int num_rows() const { return given.num_tokens * given.rule.experts_per_token; }

  RouterCase given;
  std::vector<std::byte> logits;
  std::vector<float> bias;
  std::vector<std::int32_t> experts, choice_rows, row_tokens, first_rows;
  std::vector<float> weights;
  std::int32_t bad_tokens = 0;
};

// The same on a device, once route_tokens has run there.
class DeviceChoices {
 public:
  DeviceChoices(Device& device, const RoutedTokens& routed, const ExpertPlan& plan)
      : logits(device, routed.logits),
        bias(device, routed.bias),
        experts(device, of_rows(routed)),
        choice_rows(device, of_rows(routed)),
        row_tokens(device, of_rows(routed)),
        weights(device, of_rows(routed)),
        first_rows(device, 4 * routed.first_rows.size()),
        tiles(device, sizeof(ExpertTile) * static_cast<std::size_t>(plan.tiles)),
        is_bad(device, 4 * static_cast<std::size_t>(routed.given.num_tokens)),
        bad_tokens(device, std::vector<std::int32_t>{0}),
        args{.logits = {logits.as(), routed.given.logits},
             .correction_bias = routed.bias.empty() ? nullptr : bias.as<float>(),
             .rule = routed.given.rule,
             .choices = {experts.as<std::int32_t>(), weights.as<float>(), choice_rows.as<std::int32_t>(),
                         row_tokens.as<std::int32_t>(), first_rows.as<std::int32_t>()},
             .tiles = {tiles.as<ExpertTile>(), static_cast<int>(plan.tiles), plan.rows},
             .is_bad = is_bad.as<std::int32_t>(),
             .bad_tokens = bad_tokens.as<std::int32_t>(),
             .num_tokens = routed.given.num_tokens} {
    device.route_tokens(args);
  }

  // Of a product that gathers rows of tokens, or not.
  [[nodiscard]] ExpertRows rows(bool gathers) const {
    return {gathers ? row_tokens.as<std::int32_t>() : nullptr, first_rows.as<std::int32_t>(), args.tiles,
            args.rule.num_experts};
  }

  DeviceTensor logits, bias, experts, choice_rows, row_tokens, weights, first_rows, tiles, is_bad, bad_tokens;
  RouteTokens args;

 private:
  [[nodiscard]] static std::size_t of_rows(const RoutedTokens& routed) {
    return 4 * static_cast<std::size_t>(routed.num_rows());
  }
};

}  // namespace dculab::kernels::gpu
