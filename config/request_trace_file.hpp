// Requests that somebody recorded, as CSV: when each arrived and how many tokens it had.
//
//   arrived_at,num_prefill_tokens,num_decode_tokens        s after the first, tokens, tokens
//
// Columns: those of Vidur's splitwise traces (microsoft/vidur, data/processed_traces/splitwise_*.csv), and `prompt_id`
// where requests with the same number ask the same.
#pragma once

#include <string>
#include <vector>

#include "core/workload.hpp"

namespace dculab::config {

// In order of arrival. Throws InputError with every problem as file:line.
[[nodiscard]] std::vector<RecordedRequest> read_request_trace(const std::string& file, const std::string& text);
[[nodiscard]] std::vector<RecordedRequest> read_request_trace_file(const std::string& path);

}  // namespace dculab::config
