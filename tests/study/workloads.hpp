// Workloads that several scenarios ask about.
#pragma once

#include <string>

namespace dculab::study {

inline const std::string kStep = "workload: {phase: decode, batch: 4, context_tokens: 500}\n";
inline const std::string kRequests = "workload: {requests: 8, prompt_tokens: 100, output_tokens: 20}\n";

}  // namespace dculab::study
