// A question about sizes and limits, by the words of `dculab recommend`.
#pragma once

#include <string>
#include <vector>

#include "study/decide/disaggregated_recommendation.hpp"
#include "study/decide/serving_recommendation.hpp"
#include "study/scenario/load_question.hpp"

namespace dculab::study {

// Empty and 0: not given.
struct RecommendChoices : LoadQuestion {
  std::string scenario;  // a file, or a name; without one a model and machines are needed
  std::string trace_file;
  int block_size = 0, concurrency = 0;
  int devices = 0, servers = 0;  // offered: devices of a server, and how many servers at most
  std::string decode_machine;    // of decode replicas, the others prefill; empty: all do both
  bool any_kv_heads = false;
};

// Throws InputError for what is missing, and for what the same checks as of a scenario file refuse.
[[nodiscard]] RecommendationQuestion recommendation_question(const RecommendChoices& choices);

// On each of the question's machines. Throws InputError. Precondition: no decode_machine.
[[nodiscard]] std::vector<Recommendation> recommend_serving(const RecommendationQuestion& question);

// The same with a decode_machine, prefill on each of the question's machines. Throws InputError.
[[nodiscard]] std::vector<DisaggregatedRecommendation> recommend_disaggregated(const RecommendationQuestion& question);

}  // namespace dculab::study
