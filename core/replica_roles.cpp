#include "core/replica_roles.hpp"

#include <algorithm>

namespace dculab {
namespace {

[[nodiscard]] double work_of(const RoleLoad& replica, ReplicaRole role) {
  return role == ReplicaRole::prefill ? replica.prompt_steps : replica.decode_share;
}

// Who has the least to do of its role.
[[nodiscard]] std::size_t idlest(std::span<const RoleLoad> replicas, ReplicaRole role) {
  std::optional<std::size_t> found;
  for (std::size_t index = 0; index < replicas.size(); ++index) {
    if (replicas[index].role != role) continue;
    if (!found || work_of(replicas[index], role) < work_of(replicas[*found], role)) found = index;
  }
  return *found;
}

}  // namespace

std::string_view name(ReplicaRole role) {
  switch (role) {
    case ReplicaRole::both:
      return "both";
    case ReplicaRole::prefill:
      return "prefill";
    case ReplicaRole::decode:
      return "decode";
  }
  return "?";
}

std::vector<std::string> problems(const RoleSwitching& switching) {
  std::vector<std::string> found;
  if (!(switching.prefill_below > 0 && switching.prefill_below < switching.prefill_above))
    found.emplace_back("role_switching: prefill_below must be above 0 and below prefill_above");
  if (!(switching.decode_below > 0 && switching.decode_below < switching.decode_above))
    found.emplace_back("role_switching: decode_below must be above 0 and below decode_above");
  if (!(switching.hold >= Seconds())) found.emplace_back("role_switching: hold must not be negative");
  return found;
}

RoleLoad RoleWork::load(ReplicaRole role, const EngineOptions& options, std::int64_t num_blocks) const {
  const double slots = static_cast<double>(num_blocks) * options.block_size;
  const double sequences = static_cast<double>(decodes.requests) / options.max_num_seqs;
  return {.role = role,
          .prompt_steps = static_cast<double>(prompts.tokens) / options.max_num_batched_tokens,
          .decode_share = std::max(sequences, static_cast<double>(decodes.tokens) / slots)};
}

ReplicaRole RoleController::too_many(std::span<const RoleLoad> replicas) const {
  double prefill = 0, decode = 0, prompt_steps = 0, decode_share = 0;
  for (const RoleLoad& replica : replicas) {
    (replica.role == ReplicaRole::prefill ? prefill : decode) += 1;
    prompt_steps += replica.prompt_steps;
    decode_share += replica.decode_share;
  }
  if (prompt_steps / prefill > switching_.prefill_above && decode > 1 &&
      decode_share / (decode - 1) <= switching_.decode_below)
    return ReplicaRole::decode;
  if (decode_share / decode > switching_.decode_above && prefill > 1 &&
      prompt_steps / (prefill - 1) <= switching_.prefill_below)
    return ReplicaRole::prefill;
  return ReplicaRole::both;
}

std::optional<std::size_t> RoleController::look(std::span<const RoleLoad> replicas, Seconds now) {
  const ReplicaRole wanted = too_many(replicas);
  if (wanted != wanted_) since_ = now;
  wanted_ = wanted;
  if (wanted == ReplicaRole::both || now - since_ < switching_.hold) return std::nullopt;
  if (switched_ && now - *switched_ < switching_.hold) return std::nullopt;
  switched_ = now;
  wanted_ = ReplicaRole::both;
  return idlest(replicas, wanted);
}

}  // namespace dculab
