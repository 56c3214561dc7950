// A device's part of a model whose routed experts are shared by many devices (expert parallelism: vLLM's
// --enable-expert-parallel, SGLang's ep_size).
//
// Attention, dense MLPs, router and shared experts are in data parallel: each device has them whole and works on its
// own sequences; or `tensor_parallel_size` devices share every head, as in model/shard.hpp, have the same sequences,
// and each send their part of the tokens to the experts. Routed experts are placed by core/expert_placement.hpp. The
// part is that of the device that gets the most rows, since the others wait for it. All devices are taken to have as
// many tokens as this one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/expert_load.hpp"
#include "core/expert_placement.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// Where the experts that all tokens go through are.
enum class SharedExperts : std::uint8_t {
  replicated,  // on every device
  placed,      // copied and placed like a routed one that every token chooses: DeepSeek-V3 section 3.4.2
};

struct ExpertSharing {
  int devices = 1;
  int devices_per_node = 1;
  int tensor_parallel_size = 1;  // of attention
  int redundant_experts = 0;
  SharedExperts shared = SharedExperts::replicated;
  ExpertStatistics statistics = ExpertStatistics::none;
  std::optional<Dtype> dispatch_dtype{};  // absent: FP8 where the experts' weights are in FP8, else 16 bits

  [[nodiscard]] int nodes() const { return (devices + devices_per_node - 1) / devices_per_node; }
};

// Everything that keeps the devices from sharing the model so; empty when nothing does. `layers`: the format of what is
// quantized in the layers.
[[nodiscard]] std::vector<std::string> expert_shard_problems(const ModelShape& model, WeightFormat layers,
                                                             const ExpertSharing& sharing);

// The part of the device that gets the most rows. Precondition: expert_shard_problems is empty.
[[nodiscard]] ModelShape shard_experts(const ModelShape& model, WeightFormat layers, const ExpertSharing& sharing,
                                       const ExpertLoad& load);

// Bytes of the routed experts that a device holds, of all layers: what arrives when all of them are placed anew.
[[nodiscard]] Bytes held_expert_bytes(const ModelShape& part, WeightFormat layers);

// What the experts of a device get of a step in which it has `tokens` tokens of its own.
struct ExpertRows {
  double rows = 0;        // (token, expert) pairs
  double tokens = 0;      // distinct ones of these
  double touched = 0;     // experts that get a row
  double longest = 0;     // rows of the one with the most
  double own_tokens = 0;  // that the device sends
  TileCounts tiles{};     // of its experts, see GroupedWork
};

// Of the busiest device of a group,
[[nodiscard]] ExpertRows busiest_rows(const ExpertPart& part, double tokens);
// and of any: of a part as that is, else of a device that has all experts.
[[nodiscard]] ExpertRows expert_rows(const Experts& experts, const ExpertLoad& load, std::int64_t tokens);

}  // namespace dculab
