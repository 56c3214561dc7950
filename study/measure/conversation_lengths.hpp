// Lengths of the requests that conversations make, by a model's own tokenizer.
#pragma once

#include <vector>

#include "study/scenario/request_workload.hpp"

namespace dculab::study {

// For count_conversations_with(). Throws InputError.
[[nodiscard]] std::vector<RecordedRequest> conversation_lengths(const ConversationRequests& asked);

}  // namespace dculab::study
