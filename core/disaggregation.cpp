#include "core/disaggregation.hpp"

#include <utility>

namespace dculab {

Prefilled begin_prefill(Request& request) {
  const Prefilled prefilled{.arrival = request.arrival,
                            .first_token = {},
                            .max_tokens = request.max_tokens,
                            .num_stored_tokens = request.num_received_tokens};
  request.max_tokens = 1;
  return prefilled;
}

bool has_answer(const Sequence& prefilled, const Prefilled& before) {
  return before.max_tokens > 1 && prefilled.finish_reason != FinishReason::stop;
}

Request decode_request(const Sequence& prefilled, Prefilled& before) {
  before.first_token = prefilled.token_times.front();
  before.num_cached_tokens = prefilled.num_cached_tokens;
  before.num_duplicate_tokens = prefilled.num_duplicate_tokens;
  before.num_preemptions = prefilled.num_preemptions;
  before.is_computed = true;
  Request request = prefilled.request;
  request.prompt_token_ids = prefilled.tokens;
  request.num_received_tokens = static_cast<int>(prefilled.tokens.size()) - 1;
  request.max_tokens = before.max_tokens - 1;
  return request;
}

Sequence joined(const Sequence& decoded, const Prefilled& before) {
  Request request = decoded.request;
  request.prompt_token_ids.pop_back();
  request.num_received_tokens = before.num_stored_tokens;
  request.max_tokens = before.max_tokens;
  request.arrival = before.arrival;
  Sequence whole(std::move(request));
  whole.tokens = decoded.tokens;
  whole.token_times = {before.first_token};
  whole.token_times.insert(whole.token_times.end(), decoded.token_times.begin(), decoded.token_times.end());
  whole.status = decoded.status;
  whole.finish_reason = decoded.finish_reason;
  whole.num_cached_tokens = before.num_cached_tokens;
  whole.num_duplicate_tokens = before.num_duplicate_tokens;
  whole.num_preemptions = before.num_preemptions + decoded.num_preemptions;
  return whole;
}

}  // namespace dculab
