// Which requests a scheduler can never serve, and why.
#include <algorithm>

#include "core/kv/table.hpp"
#include "core/scheduler.hpp"

namespace dculab {
namespace {

std::string tokens_text(std::int64_t count) { return std::to_string(count) + " tokens"; }

// Streams could go on, but the table of rotary angles grows with them: to half a gigabyte for heads of 128 here.
constexpr std::int64_t kLongestStream = 1 << 20;

// Why a request's samples cannot share blocks.
std::optional<std::string> refusal_of_samples(const Request& request, const EngineOptions& options) {
  if (request.n < 1) return "n must be at least 1, not " + std::to_string(request.n);
  if (request.n == 1) return std::nullopt;
  const std::vector<std::string> reasons = clashes(options.kv(), KvFeature::samples);
  return reasons.empty() ? std::nullopt : std::optional(reasons.front());
}

}  // namespace

std::optional<std::string> Scheduler::refusal(const Request& request) const {
  const auto prompt = static_cast<std::int64_t>(request.prompt_token_ids.size());
  if (prompt == 0) return request.num_padding_tokens > 0 ? "the prompt is nothing but padding" : "the prompt is empty";
  if (request.max_tokens < 1) return "max_tokens must be at least 1, not " + std::to_string(request.max_tokens);

  const std::int64_t total = prompt + request.max_tokens;
  const std::string what =
      "the prompt of " + tokens_text(prompt) + " with max_tokens " + std::to_string(request.max_tokens);
  // StreamingLLM counts positions within the cache.
  const KvPolicy& policy = kv_policy(options_.kv_retention.policy);
  const bool streams = policy.moves_positions;
  const std::int64_t positions = streams ? std::min(total, capacity()) : total;
  if (positions > limits_.max_position_embeddings)
    return (streams ? "kv_retention " + std::string(policy.name) + " keeps " + tokens_text(positions) + ", more than "
                    : what + " is longer than ") +
           "max_position_embeddings (" + std::to_string(limits_.max_position_embeddings) + ")" +
           (streams ? "" : "; shorten it, or take a model with a longer context");
  if (streams && total > kLongestStream)
    return what + " is longer than a stream can be (" + tokens_text(kLongestStream) + ")";
  if (auto reason = refusal_of_samples(request, options_)) return reason;

  if (request.received_kv && !combines(options_.kv(), KvFeature::handing_over))
    return "only a whole KV cache of one format is received from another engine, not one of kv_retention " +
           std::string(policy.name) + " and " + std::string(name(options_.kv_cache_dtype));

  // The last generated token is handed out, never computed on.
  const bool has_few = options_.groups_by_load && options_.groups_by_load->heads == HeadAssignment::few;
  const HeadSet set = has_few ? HeadSet::few : HeadSet::many;
  const int blocks = pool_.blocks_for(in_slots(set, limits_.kv_demand(std::min(total - 1, capacity()))));
  if (blocks > pool_.num_blocks())
    return what + " needs " + std::to_string(blocks) + " KV blocks of " + tokens_text(pool_.block_size()) +
           ", but the pool has " + std::to_string(pool_.num_blocks());
  if (!options_.enable_chunked_prefill && prompt - request.num_received_tokens > options_.max_num_batched_tokens)
    return "the prompt of " + tokens_text(prompt) + " does not fit into one step of max_num_batched_tokens (" +
           std::to_string(options_.max_num_batched_tokens) + "), and chunked prefill is off";
  return std::nullopt;
}

}  // namespace dculab
