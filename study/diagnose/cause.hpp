// What can make a step slower than predicted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "study/diagnose/step_facts.hpp"

namespace dculab::study {

enum class Cause : std::uint8_t {
  host_per_step,
  host_per_sequence,
  launches,
  slow_products,
  slow_quantized_products,
  act_order,
  weights_widened,
  weights_over_host_link,
  layers_on_host,
  low_clocks,
  kv_read_granularity,
  kv_per_query_head,
  kv_copied,
  no_kv_cache,
  slow_attention,
  scores_in_memory,
  no_matrix_cores,
  slow_exchange,
  all_experts_read,
  slow_experts,
  experts_one_by_one,
  fewer_sequences,
  prefills_in_steps,
  drafts_rejected,
  slow_elementwise,
};
inline constexpr std::size_t kCauses = 25;

[[nodiscard]] std::string_view name(Cause cause);     // "kv_read_granularity"
[[nodiscard]] std::string_view meaning(Cause cause);  // "attention reads KV in pieces that wait for one another"

// A flag, a command or a measurement that confirms or removes it, in the words of the program that ran.
[[nodiscard]] std::string what_to_try(Cause cause, const StepFacts& facts);

}  // namespace dculab::study
