#include "model/expert_shard.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "model/shard.hpp"
#include "model/weight_shapes.hpp"

namespace dculab {
namespace {

[[nodiscard]] bool places_shared(const LayerKind& kind, const ExpertSharing& sharing) {
  return sharing.shared == SharedExperts::placed && kind.mlp.intermediate_size > 0;
}

[[nodiscard]] PlacementRule rule_of(const ExpertSharing& sharing, const Experts& experts) {
  return {.devices = sharing.devices,
          .nodes = sharing.nodes(),
          .groups = experts.num_groups,
          .redundant = sharing.redundant_experts,
          .statistics = sharing.statistics};
}

// The probability with which a token goes to each expert, the most loaded first. The shared expert, if it is placed, is
// the first: every token goes to it.
[[nodiscard]] std::vector<double> probabilities_of(const LayerKind& kind, const ExpertSharing& sharing,
                                                   const ExpertLoad& load) {
  const Experts& experts = *kind.experts;
  std::vector<double> result = choice_probabilities(load, experts.num_experts, experts.num_experts_per_tok);
  std::ranges::sort(result, std::greater());
  if (places_shared(kind, sharing)) result.insert(result.begin(), 1.0);
  return result;
}

// The probability that a token goes to a node, where its experts are of `chosen` of `groups` groups, and each of
// `nodes` nodes has as many whole groups, or as large a part of one: of `chosen` groups that are drawn, j are the
// node's, and then one of `per_token` experts is.
[[nodiscard]] double reached_by_groups(int groups, int nodes, int chosen, double per_token) {
  if (groups < nodes)
    return static_cast<double>(chosen) / groups * reached(per_token / chosen * groups / nodes, per_token);
  const int own = groups / nodes;
  const auto choose = [](int n, int k) {
    double ways = 1;
    for (int index = 0; index < k; ++index) ways *= static_cast<double>(n - index) / (index + 1);
    return k < 0 || k > n ? 0.0 : ways;
  };
  double probability = 0;
  for (int j = 1; j <= std::min(own, chosen); ++j)
    probability += choose(own, j) * choose(groups - own, chosen - j) / choose(groups, chosen) *
                   reached(per_token * j / chosen, per_token);
  return probability;
}

// Nodes beside its own that a token goes to: the mean over all nodes that it may come from.
[[nodiscard]] double other_nodes(const ExpertPlacement& placement, const Experts& experts, const ExpertSharing& sharing,
                                 double per_token) {
  const int nodes = sharing.nodes();
  if (nodes == 1) return 0;
  double sum = 0;
  for (int node = 0; node < nodes; ++node) {
    double load = 0;
    for (int device = node * sharing.devices_per_node;
         device < std::min(sharing.devices, (node + 1) * sharing.devices_per_node); ++device)
      load += load_of(placement.devices[static_cast<std::size_t>(device)]);
    sum += placement.groups_on_nodes ? reached_by_groups(experts.num_groups, nodes, experts.groups_per_tok, per_token)
                                     : reached(load, per_token);
  }
  return sum * (nodes - 1) / nodes;
}

void share_experts(LayerKind& kind, const ModelShape& model, WeightFormat layers, const ExpertSharing& sharing,
                   const ExpertLoad& load) {
  Experts& experts = *kind.experts;
  const std::vector<double> probabilities = probabilities_of(kind, sharing, load);
  const ExpertPlacement placement = place_experts(probabilities, rule_of(sharing, experts));
  const auto busiest =
      std::ranges::max_element(placement.devices, {}, [](const auto& copies) { return load_of(copies); });
  const bool is_fp8 = model.slot_format(WeightSlot::expert_up_proj, kind, layers).dtype == Dtype::fp8_e4m3;
  experts.part = {.devices = sharing.devices,
                  .devices_per_node = sharing.devices_per_node,
                  .attention_devices = sharing.tensor_parallel_size,
                  .rows_per_token = load_of(probabilities),
                  .copies = *busiest,
                  .other_nodes = other_nodes(placement, experts, sharing, load_of(probabilities)),
                  .dispatch_dtype = sharing.dispatch_dtype.value_or(is_fp8 ? Dtype::fp8_e4m3 : Dtype::bf16)};
  if (places_shared(kind, sharing)) kind.mlp.intermediate_size = 0;
}

void check_mixture(std::vector<std::string>& found, const LayerKind& kind, const ExpertSharing& sharing) {
  const Experts& experts = *kind.experts;
  const bool placed = places_shared(kind, sharing);
  for (std::string& problem : problems(rule_of(sharing, experts), experts.num_experts + (placed ? 1 : 0)))
    found.push_back(std::move(problem));
  if (placed && kind.mlp.intermediate_size != experts.intermediate_size)
    found.push_back("shared experts of width " + std::to_string(kind.mlp.intermediate_size) +
                    " cannot be placed as routed ones of width " + std::to_string(experts.intermediate_size) +
                    "; keep them replicated");
}

}  // namespace

std::vector<std::string> expert_shard_problems(const ModelShape& model, WeightFormat layers,
                                               const ExpertSharing& sharing) {
  const int devices = sharing.tensor_parallel_size;
  std::vector<std::string> found;
  if (!model.has_experts())
    return {model.name + " has no experts to share over " + std::to_string(sharing.devices) +
            " devices; use tensor_parallel_size and data_parallel_size"};
  if (sharing.devices % devices != 0)
    found.push_back("groups of " + std::to_string(devices) + " devices for attention do not divide " +
                    std::to_string(sharing.devices) + " devices that share the experts");
  ModelShape attention = model;  // routed and shared experts are not divided
  for (LayerKind& kind : attention.kinds)
    if (kind.experts) {
      kind.experts.reset();
      kind.mlp.intermediate_size = 0;
    }
  if (devices > 1)
    for (std::string& problem : shard_problems(attention, layers, devices)) found.push_back(std::move(problem));
  for (const LayerKind& kind : model.kinds)
    if (kind.experts) check_mixture(found, kind, sharing);
  return found;
}

ModelShape shard_experts(const ModelShape& model, WeightFormat layers, const ExpertSharing& sharing,
                         const ExpertLoad& load) {
  ModelShape part = shard(model, layers, sharing.tensor_parallel_size);
  for (std::size_t kind = 0; kind < part.kinds.size(); ++kind) {
    if (!part.kinds[kind].experts) continue;
    part.kinds[kind].experts = model.kinds[kind].experts;
    part.kinds[kind].mlp = model.kinds[kind].mlp;
    share_experts(part.kinds[kind], model, layers, sharing, load);
  }
  return part;
}

Bytes held_expert_bytes(const ModelShape& part, WeightFormat layers) {
  Bytes bytes;
  for (std::size_t kind = 0; kind < part.kinds.size(); ++kind)
    for (const WeightShape& weight : layer_weights(part, part.kinds[kind]))
      if (weight.slot == WeightSlot::expert_up_proj || weight.slot == WeightSlot::expert_down_proj)
        bytes += weight_storage(part.slot_format(weight.slot, part.kinds[kind], layers), weight.matrix_values()) *
                 part.num_layers(kind);
  return bytes;
}

ExpertRows busiest_rows(const ExpertPart& part, double tokens) {
  ExpertRows result;
  result.own_tokens = tokens / part.attention_devices;
  const double all = result.own_tokens * part.devices, load = load_of(part.copies);
  const auto held = static_cast<double>(part.copies.size());
  const double expected = all * load, mean = all * part.rows_per_token / part.devices;
  result.rows = std::min(std::max(expected, largest_of(part.devices, mean)), all * held);
  result.tokens = std::min({all * reached(load, part.rows_per_token) * result.rows / expected, all, result.rows});
  const double drawn = all * result.rows / expected;  // tokens that give the device these rows
  for (const double copy : part.copies) result.touched += 1 - std::pow(1 - std::min(1.0, copy), drawn);
  result.tiles = tiles_of(part.copies, drawn);
  const double largest = all * std::ranges::max(part.copies);
  result.longest = std::min(std::max({largest, largest_of(part.devices * held, mean / held), 1.0}), all);
  return result;
}

ExpertRows expert_rows(const Experts& experts, const ExpertLoad& load, std::int64_t step_tokens) {
  const auto tokens = static_cast<double>(step_tokens);
  if (experts.part) return busiest_rows(*experts.part, tokens);
  const int count = experts.num_experts, chosen = experts.num_experts_per_tok;
  return {.rows = tokens * chosen,
          .tokens = tokens,
          .touched = touched_experts(load, count, chosen, tokens),
          .longest = longest_expert(load, count, chosen, tokens),
          .own_tokens = tokens,
          .tiles = expert_tiles(load, count, chosen, tokens)};
}

}  // namespace dculab
