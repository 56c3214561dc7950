#include "engine/executors/gpu_expert_routing.hpp"

#include <algorithm>
#include <span>

#include "engine/executors/expert_routing.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kWord = sizeof(std::int32_t);

struct Sizes {
  std::size_t rows = 0, tokens = 0, layers = 0, first_rows = 0;  // first_rows: of a layer
};

[[nodiscard]] Sizes sizes_of(const ModelShape& shape, int most_tokens) {
  int most_experts = 0, most_per_token = 0;
  for (const LayerKind& kind : shape.kinds) {
    if (!kind.experts) continue;
    most_experts = std::max(most_experts, kind.experts->num_experts);
    most_per_token = std::max(most_per_token, kind.experts->num_experts_per_tok);
  }
  if (most_experts == 0) return {};
  const auto tokens = static_cast<std::size_t>(most_tokens);
  return {tokens * static_cast<std::size_t>(most_per_token), tokens, static_cast<std::size_t>(shape.num_layers()),
          static_cast<std::size_t>(most_experts) + 1};
}

}  // namespace

GpuExpertRouting::GpuExpertRouting(const std::shared_ptr<kernels::gpu::Device>& device, const ModelShape& shape,
                                   int most_tokens)
    : device_(device), shape_(shape) {
  const Sizes sizes = sizes_of(shape, most_tokens);
  if (sizes.rows == 0) return;
  for (DeviceMemory* each : {&experts_, &choice_rows_, &row_tokens_, &weights_})
    *each = DeviceMemory(device, kWord * sizes.rows);
  tiles_ = DeviceMemory(device, sizeof(kernels::gpu::ExpertTile) * sizes.rows);
  for (DeviceMemory* each : {&is_bad_, &shared_gate_}) *each = DeviceMemory(device, kWord * sizes.tokens);
  first_rows_ = DeviceMemory(device, kWord * sizes.layers * sizes.first_rows);
  bad_tokens_ = DeviceMemory(device, kWord * sizes.layers);
  first_rows_stride_ = static_cast<int>(sizes.first_rows);
  host_first_rows_.resize(sizes.layers * sizes.first_rows);
  host_bad_tokens_.resize(sizes.layers);
  for (int layer = 0; layer < shape.num_layers(); ++layer) {
    const auto& experts = shape.layer(layer).experts;
    histogram_.choices.emplace_back(experts ? static_cast<std::size_t>(experts->num_experts) : 0);
  }
}

Bytes GpuExpertRouting::memory(const ModelShape& shape, int most_tokens) {
  const Sizes sizes = sizes_of(shape, most_tokens);
  const std::size_t words = 6 * sizes.rows + 2 * sizes.tokens + sizes.layers * (sizes.first_rows + 1);
  return Bytes(static_cast<double>(kWord * words));
}

void GpuExpertRouting::begin_step() {
  if (first_rows_stride_ == 0) return;
  device_->fill(bad_tokens_.as(), 0, kWord * host_bad_tokens_.size());
  is_expected_.assign(host_bad_tokens_.size(), false);
}

kernels::gpu::RouteTokens GpuExpertRouting::route(const Experts& experts, int layer, int tokens, Dtype weights) const {
  const std::int64_t rows = std::int64_t{tokens} * experts.num_experts_per_tok;
  const auto plan = lower::dculab_gpu::plan_expert_matmul(rows, experts.num_experts, weights);
  return {.rule = router_rule(experts),
          .choices = {.experts = experts_.as<std::int32_t>(),
                      .weights = weights_.as<float>(),
                      .choice_rows = choice_rows_.as<std::int32_t>(),
                      .row_tokens = row_tokens_.as<std::int32_t>(),
                      .first_rows = first_rows_.as<std::int32_t>() + std::ptrdiff_t{layer} * first_rows_stride_},
          .tiles = {tiles_.as<kernels::gpu::ExpertTile>(), static_cast<int>(plan.tiles), plan.rows},
          .is_bad = is_bad_.as<std::int32_t>(),
          .bad_tokens = bad_tokens_.as<std::int32_t>() + layer,
          .num_tokens = tokens};
}

kernels::gpu::ExpertRows GpuExpertRouting::rows(const kernels::gpu::RouteTokens& routed, bool gathers) const {
  return {.row_tokens = gathers ? routed.choices.row_tokens : nullptr,
          .first_rows = routed.choices.first_rows,
          .tiles = routed.tiles,
          .num_experts = routed.rule.num_experts};
}

void GpuExpertRouting::end_step() {
  if (first_rows_stride_ == 0) return;
  device_->download(host_bad_tokens_.data(), bad_tokens_.as(), kWord * host_bad_tokens_.size());
  device_->download(host_first_rows_.data(), first_rows_.as(), kWord * host_first_rows_.size());
  for (int layer = 0; layer < shape_.num_layers(); ++layer) {
    const auto& experts = shape_.layer(layer).experts;
    if (!experts || !is_expected_[static_cast<std::size_t>(layer)]) continue;
    require_routed(host_bad_tokens_[static_cast<std::size_t>(layer)], layer);
    const std::int32_t* first_rows = host_first_rows_.data() + std::ptrdiff_t{layer} * first_rows_stride_;
    std::vector<std::int64_t> tokens;
    for (int expert = 0; expert < experts->num_experts; ++expert)
      tokens.push_back(first_rows[expert + 1] - first_rows[expert]);
    histogram_.add(static_cast<std::size_t>(layer), tokens);
  }
}

ExpertHistogram GpuExpertRouting::take_histogram() { return take(histogram_); }

}  // namespace dculab::engine
