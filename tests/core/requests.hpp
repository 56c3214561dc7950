// Options and requests that several tests of the scheduler start from.
#pragma once

#include "core/engine_options.hpp"
#include "core/request.hpp"

namespace dculab {

inline EngineOptions options_with(int block_size, int max_num_seqs, int max_num_batched_tokens) {
  EngineOptions options;
  options.block_size = block_size;
  options.max_num_seqs = max_num_seqs;
  options.max_num_batched_tokens = max_num_batched_tokens;
  return options;
}

inline Request request_of(SequenceId id, int prompt_tokens, int max_tokens) {
  Request request;
  request.id = id;
  request.max_tokens = max_tokens;
  for (int position = 0; position < prompt_tokens; ++position)
    request.prompt_token_ids.push_back(static_cast<TokenId>((7 * id + 3 * position) % 101));
  return request;
}

}  // namespace dculab
