// Requests that somebody recorded: when each arrived, how many tokens it had, and what its prompt shares with others.
// Which form a file has is found by its columns or keys (tests/data/foreign/FORMATS.md, 10):
//
//   Vidur, splitwise  CSV arrived_at,num_prefill_tokens,num_decode_tokens        s after the first, tokens, tokens;
//   with
//                     `prompt_id` where requests with the same number ask the same
//   Azure 2023, 2024  CSV TIMESTAMP,ContextTokens,GeneratedTokens                date and time of day
//   BurstGPT          CSV Timestamp,...,Request tokens,Response tokens,...       s; answers of 0 tokens failed
//   Mooncake          JSON Lines timestamp, input_length, output_length, hash_ids        ms; blocks of 512 tokens
//   Qwen-Bailian      the same with chat_id and turn                             s; blocks of 16 tokens
//
// Times count from the first request. Requests with the same hash_ids at their beginning share so many whole blocks.
#pragma once

#include <string>
#include <vector>

#include "core/workload.hpp"

namespace dculab::config {

// In order of arrival. Throws InputError with every problem as file:line.
[[nodiscard]] std::vector<RecordedRequest> read_request_trace(const std::string& file, const std::string& text);
[[nodiscard]] std::vector<RecordedRequest> read_request_trace_file(const std::string& path);

}  // namespace dculab::config
