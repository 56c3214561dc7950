// max_num_batched_tokens, chosen by serving the requests under a virtual clock with each candidate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/workload.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/study/serving_setting.hpp"
#include "study/decide/preference.hpp"

namespace dculab::study {

struct BatchedTokens {
  int max_num_batched_tokens = 0;
  double goodput = 0;         // requests per second that meet the service level; without one all do
  double slo_attainment = 1;  // share of the requests that do
  Seconds ttft_p90, tpot_p90, latency_mean;
  int preemptions = 0;
  double full_requests_per_second = 0;  // while the queue never empties
  Seconds full_tpot{};                  // then, median of all; filling and draining are in it
  Seconds prompt_token;                 // in a step of nothing but prompts
};

struct BatchedTokensChoice {
  std::vector<BatchedTokens> candidates;  // the usual 2048 first
  std::vector<Evaluated> evaluated;       // by goodput, or by 1 / mean latency
  Verdict verdict;
  bool by_goodput = false;  // else by mean latency
};

// What must be carried: as much as any candidate can, or no more than this many requests per second.
using CarriedRate = std::optional<double>;

// Of those that carry the rate: with a service level the candidate of the highest goodput, without one, or where none
// meets it, that of the smallest mean latency; the usual one where it is within the tie. Candidates that leave no room
// for the longest request are left out. Throws InputError for a request that cannot be served.
[[nodiscard]] BatchedTokensChoice choose_batched_tokens(const sim::SimulatedServer& server,
                                                        const RequestWorkload& workload, const sim::SteadyLoad& load,
                                                        const ServiceLevel& objective, CarriedRate carried);

}  // namespace dculab::study
