// What a user asks for (Request), and how far the engine has got with it (Sequence).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "core/block_pool.hpp"
#include "core/kv/skip.hpp"
#include "core/units.hpp"

namespace dculab {

// How the next token is drawn from the logits, by a TokenSource.
struct SamplingParams {
  double temperature = 0.0;  // 0 = greedy
  int top_k = 0;             // 0 = all
  double top_p = 1.0;
  std::uint64_t seed = 0;

  // Whether only the likeliest tokens can be drawn: they must be found among all.
  [[nodiscard]] bool filters() const { return temperature > 0 && (top_k > 0 || top_p < 1); }
};

enum class EosHandling : std::uint8_t { stop, ignore };  // vLLM's ignore_eos

struct Request {
  SequenceId id = 0;  // unique among the requests of one serving loop
  std::vector<TokenId> prompt_token_ids{};
  // KvSkip::padding: pad tokens that the prompt came with and does not have any more.
  int num_padding_tokens = 0;
  int max_tokens = 16;  // generated at most, by each sample
  // Samples: how many texts follow the prompt, which is computed once. Sample i is a sequence of its own, with id + i
  // and seed + i; ids must be unique with that.
  int n = 1;
  SamplingParams sampling{};
  // The K and V of the first tokens come from elsewhere: of all but the last from the server that computed the prompt,
  // and once there are blocks for them, the request decodes; or of a prefix from a store. After a preemption they are
  // computed here. Less than the prompt's tokens.
  int num_received_tokens = 0;
  // Them, as Executor::read_blocks wrote the blocks that they fill, the last perhaps in part; null where a step is only
  // priced. Let go once they are in the cache.
  std::shared_ptr<const std::vector<std::byte>> received_kv{};
  std::vector<TokenId> stop_tokens{};  // generating one of them ends the request; it is kept as its last token
  EosHandling eos = EosHandling::stop;
  Seconds arrival{};  // at the engine
  Seconds reading{};  // that a server took over it before; latencies have it in them
};

// As KvSkip::padding: the prompt without it, which is counted.
inline void take_out_padding(Request& request, TokenId pad) {
  std::vector<TokenId> kept = without_padding(request.prompt_token_ids, pad, request.stop_tokens);
  request.num_padding_tokens += static_cast<int>(request.prompt_token_ids.size() - kept.size());
  request.prompt_token_ids = std::move(kept);
}

// swapped: waits too, its KV cache in host memory.
enum class SequenceStatus : std::uint8_t { waiting, running, swapped, finished };
enum class FinishReason : std::uint8_t { none, stop, length };

struct Sequence {
  explicit Sequence(Request asked) : request(std::move(asked)), tokens(request.prompt_token_ids) {}

  Request request;
  std::vector<TokenId> tokens;  // the prompt, then what was generated
  int sample = 0;               // of the request's n
  int num_computed_tokens = 0;  // with K and V in the cache, or evicted from it
  int num_evicted_tokens = 0;   // see EngineOptions::kv_retention
  int num_shared_tokens = 0;    // the first: others computed their K and V, in blocks that may not be written to
  int num_cached_tokens = 0;    // of the prompt, found by prefix caching or in a store
  int num_prefill_tokens = 0;   // what prefill must cover: the prompt; when it is recomputed also what was generated
  // KvSkip::duplicate_prompts: tokens of the prompt, all of them, that another sequence has written; the prompt's hash.
  int num_duplicate_tokens = 0;
  PrefixHash prompt_hash;
  BlockTable block_table;
  BlockTable host_table;  // in host memory, of a swapped sequence
  SequenceStatus status = SequenceStatus::waiting;
  FinishReason finish_reason = FinishReason::none;
  int num_preemptions = 0;
  HeadSet head_set = HeadSet::many;  // since it was first admitted
  std::vector<Seconds> token_times;  // [num_generated()]

  [[nodiscard]] int num_tokens() const { return static_cast<int>(tokens.size()); }
  [[nodiscard]] int num_tokens_in_cache() const { return num_computed_tokens - num_evicted_tokens; }
  [[nodiscard]] int num_prompt_tokens() const { return static_cast<int>(request.prompt_token_ids.size()); }
  [[nodiscard]] int num_generated() const { return num_tokens() - num_prompt_tokens(); }
  [[nodiscard]] std::span<const TokenId> generated() const {
    return std::span(tokens).subspan(request.prompt_token_ids.size());
  }
  [[nodiscard]] Phase phase() const {
    return num_computed_tokens < num_prefill_tokens ? Phase::prefill : Phase::decode;
  }

  // Time to first token, and time per output token after the first (0 with fewer than two tokens).
  // Preconditions: num_generated() >= 1.
  [[nodiscard]] Seconds ttft() const { return token_times.front() - request.arrival + request.reading; }
  [[nodiscard]] Seconds tpot() const {
    const double gaps = static_cast<double>(token_times.size()) - 1.0;
    return gaps > 0 ? (token_times.back() - token_times.front()) / gaps : Seconds{};
  }
  [[nodiscard]] Seconds latency() const { return token_times.back() - request.arrival + request.reading; }
};

}  // namespace dculab
