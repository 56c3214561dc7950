#include "engine/parallel/division.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/exchange/rank_group.hpp"
#include "model/shard.hpp"

namespace dculab::engine {
namespace {

[[nodiscard]] bool shares_experts(const Division& division) {
  return division.is_divided() && division.experts == ExpertDivision::by_expert;
}

}  // namespace

ExpertSharing expert_sharing(const Division& division) {
  const int ranks = division.tensor_parallel_size;
  return {.devices = ranks, .devices_per_node = ranks, .tensor_parallel_size = ranks, .dispatch_dtype = Dtype::f32};
}

void require_divisible(const ModelShape& model, WeightFormat layers, const Division& division) {
  const int ranks = division.tensor_parallel_size;
  if (!division.is_divided()) {
    if (division.experts == ExpertDivision::by_expert)
      throw InputError("enable_expert_parallel: experts are divided among the ranks; add tensor_parallel_size");
    return;
  }
  if (ranks > kMostRanks)
    throw InputError("tensor_parallel_size " + std::to_string(ranks) + ": at most " + std::to_string(kMostRanks) +
                     " processes share a model here");
  const std::vector<std::string> found = shares_experts(division)
                                             ? expert_shard_problems(model, layers, expert_sharing(division))
                                             : shard_problems(model, layers, ranks);
  if (!found.empty()) throw InputError("tensor_parallel_size " + std::to_string(ranks) + ": " + found.front());
}

ModelShape part_of(const ModelShape& model, WeightFormat layers, const Division& division, const ExpertLoad& load) {
  if (!division.is_divided()) return model;
  if (shares_experts(division)) return shard_experts(model, layers, expert_sharing(division), load);
  return shard(model, layers, division.tensor_parallel_size);
}

Division division_of(const ModelShape& part) {
  const bool by_expert = std::ranges::any_of(
      part.kinds, [](const LayerKind& kind) { return kind.experts && kind.experts->part.has_value(); });
  return {part.tensor_parallel_size, by_expert ? ExpertDivision::by_expert : ExpertDivision::within_experts};
}

int threads_of_rank(int threads, const Division& division) {
  return std::max(1, threads / division.tensor_parallel_size);
}

}  // namespace dculab::engine
