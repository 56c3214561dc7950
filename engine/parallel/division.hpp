// How processes of this machine share a model, and what each of them has of it: the parts that the simulator prices
// (model/shard.hpp, model/expert_shard.hpp). Words: vLLM's.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/expert_load.hpp"
#include "model/expert_shard.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// What becomes of routed experts: each rank has a part of every expert, or some experts whole.
enum class ExpertDivision : std::uint8_t { within_experts, by_expert };

struct Division {
  int tensor_parallel_size = 1;  // ranks: processes, this one among them
  ExpertDivision experts = ExpertDivision::within_experts;

  [[nodiscard]] bool is_divided() const { return tensor_parallel_size > 1; }

  friend auto operator<=>(const Division&, const Division&) = default;
};

// As the planner takes it: experts in the order of their numbers, as many on each rank, and values sent as they are.
[[nodiscard]] ExpertSharing expert_sharing(const Division& division);

// Throws InputError for a model that cannot be divided so. `layers`: the format of what is quantized.
void require_divisible(const ModelShape& model, WeightFormat layers, const Division& division);

// What steps of a rank are planned for; the model itself where it is not divided. Precondition: require_divisible().
[[nodiscard]] ModelShape part_of(const ModelShape& model, WeightFormat layers, const Division& division,
                                 const ExpertLoad& load = {});

// Of which division `part` is.
[[nodiscard]] Division division_of(const ModelShape& part);

// Of `threads` threads in all, those of one rank.
[[nodiscard]] int threads_of_rank(int threads, const Division& division);

}  // namespace dculab::engine
