// A request whose prompt one replica computes and whose answer another decodes: two requests in a row, and one sequence
// for whoever asked.
#pragma once

#include "core/request.hpp"

namespace dculab {

// What the decode replica is not told.
struct Prefilled {
  Seconds arrival, first_token;
  int max_tokens = 0, num_stored_tokens = 0, num_cached_tokens = 0, num_duplicate_tokens = 0, num_preemptions = 0;
  bool is_computed = false;  // and on its way to a decode replica, or there
};

// Makes `request` that of its prompt and the first token.
[[nodiscard]] Prefilled begin_prefill(Request& request);

// Whether the request goes on after its first token.
[[nodiscard]] bool has_answer(const Sequence& prefilled, const Prefilled& before);

// The request for the tokens after the first, which has received the K and V of the prompt. Its arrival is the
// prefill's; the caller sets when it comes.
[[nodiscard]] Request decode_request(const Sequence& prefilled, Prefilled& before);

// As if one server had served the request.
[[nodiscard]] Sequence joined(const Sequence& decoded, const Prefilled& before);

}  // namespace dculab
