// What replicas do for requests, and when one of them changes it: of the engine, or of the simulator's deployments.
//
// Where prefill and decode are apart, a replica takes new prompts or it takes prompts that others have computed. A role
// says what a replica is sent from now on: it ends what it has begun, so roles change between two steps.
//
//   prompts waiting  = tokens of prompts that are not computed yet / (prefill replicas * max_num_batched_tokens),
//                      in steps of a replica
//   decodes          = the sum over all replicas of max(requests / max_num_seqs, tokens / slots of the KV cache), with
//                      the tokens of prompts and whole answers, / decode replicas
//
//   decode -> prefill   while prompts waiting > prefill_above and the other decode replicas could take this one's work:
//                       decodes * n / (n - 1) <= decode_below
//   prefill -> decode   while decodes > decode_above and the other prefill replicas could:
//                       prompts waiting * n / (n - 1) <= prefill_below
//
// Who has the least to do of what it gives up goes. Hysteresis: a condition must have held for `hold` without a break,
// and a replica that has changed is given `hold` to have an effect; since `below` lies under `above`, a change never
// makes the opposite one due at once. One replica of each role stays. The two signals, each with an upper and a lower
// threshold, and one change at a time are those of NVIDIA Dynamo's load-based planner, which adds and removes workers
// (https://docs.nvidia.com/dynamo/latest/architecture/planner.html: prefill queue, utilization of the KV cache).
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine_options.hpp"
#include "core/router.hpp"
#include "core/units.hpp"

namespace dculab {

enum class ReplicaRole : std::uint8_t { both, prefill, decode };
[[nodiscard]] std::string_view name(ReplicaRole role);

struct RoleSwitching {
  double prefill_above = 2, prefill_below = 1;    // steps of prompts that wait for each prefill replica
  double decode_above = 0.9, decode_below = 0.7;  // share of what a decode replica can hold
  Seconds hold{1};

  friend bool operator==(const RoleSwitching&, const RoleSwitching&) = default;
};

// Everything that makes the thresholds unusable; empty when they are sound.
[[nodiscard]] std::vector<std::string> problems(const RoleSwitching& switching);

// What a replica has to do.
struct RoleLoad {
  ReplicaRole role = ReplicaRole::both;
  double prompt_steps = 0;  // of prompts that it has not computed
  double decode_share = 0;  // of its room, by requests that decode there or wait to
};

// What a replica was sent and has not ended: prompts to compute, with their tokens, and requests to decode, with the
// tokens of prompt and answer.
struct RoleWork {
  ReplicaLoad prompts, decodes;

  void begin_prompt(const Request& request) { prompts += {1, std::ssize(request.prompt_token_ids)}; }
  void end_prompt(const Request& request) { prompts += {-1, -std::ssize(request.prompt_token_ids)}; }
  void begin_decode(const Request& request) { decodes += {1, tokens_of(request)}; }
  void end_decode(const Request& request) { decodes += {-1, -tokens_of(request)}; }

  // Of a replica with `num_blocks` KV blocks.
  [[nodiscard]] RoleLoad load(ReplicaRole role, const EngineOptions& options, std::int64_t num_blocks) const;

 private:
  [[nodiscard]] static std::int64_t tokens_of(const Request& request) {
    return std::ssize(request.prompt_token_ids) + request.max_tokens;
  }
};

class RoleController {
 public:
  // Precondition: problems(switching) is empty.
  explicit RoleController(const RoleSwitching& switching) : switching_(switching) {}

  // Which replica takes the other role from `now` on, if any. Precondition: `now` is not before that of the last call.
  [[nodiscard]] std::optional<std::size_t> look(std::span<const RoleLoad> replicas, Seconds now);

 private:
  // The role that a replica should leave; `both`: none.
  [[nodiscard]] ReplicaRole too_many(std::span<const RoleLoad> replicas) const;

  RoleSwitching switching_;
  ReplicaRole wanted_ = ReplicaRole::both;  // the role that a replica should leave, since when
  Seconds since_;
  std::optional<Seconds> switched_;
};

}  // namespace dculab
