#include "study/decide/batched_tokens.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/decide/replica_service.hpp"
#include "study/decide/serving_case.hpp"

namespace dculab::study {
namespace {

// Of as many prompts as fit into a step, or a part of one.
[[nodiscard]] Seconds prompt_token(const sim::SimulatedServer& server, int tokens, int prompt_tokens) {
  const int prompts = std::max(1, tokens / prompt_tokens), each = std::min(tokens, prompt_tokens);
  const sim::ReplicaDevices devices = server.deployment.of(ReplicaRole::both);
  const StepPlan plan = plan_step(sim::part_of_a_device(devices, server.machine, server.model, server.options),
                                  server.options, uniform_batch(Phase::prefill, prompts, each));
  return sim::price_step(server.machine, plan).seconds / (static_cast<double>(prompts) * each);
}

[[nodiscard]] BatchedTokens serve_with(int tokens, const sim::SteadyLoad& load, sim::SimulatedServer server,
                                       const RequestWorkload& workload, const ServiceLevel& objective) {
  server.options.max_num_batched_tokens = tokens;
  const sim::ServingRun run = sim::simulate(server, workload, objective);
  const ServingMetrics& metrics = run.metrics;
  BatchedTokens result{.max_num_batched_tokens = tokens,
                       .goodput = static_cast<double>(metrics.requests_within_objective()) / metrics.duration().value(),
                       .slo_attainment = static_cast<double>(metrics.requests_within_objective()) /
                                         static_cast<double>(metrics.requests()),
                       .ttft_p90 = metrics.ttft().quantile(0.9),
                       .tpot_p90 = metrics.tpot().count() > 0 ? metrics.tpot().quantile(0.9) : Seconds(),
                       .latency_mean = metrics.latency().mean(),
                       .preemptions = run.num_preemptions,
                       .prompt_token = prompt_token(server, tokens, load.prompt_tokens)};
  const FullService full = serve_full(server, workload, load);
  result.full_requests_per_second = full.requests_per_second;
  result.full_tpot = full.tpot;
  return result;
}

// At the same time, as far as there are cores.
[[nodiscard]] std::vector<BatchedTokens> serve_with_each(const std::vector<int>& sizes, const sim::SteadyLoad& load,
                                                         const sim::SimulatedServer& server,
                                                         const RequestWorkload& workload,
                                                         const ServiceLevel& objective) {
  std::vector<BatchedTokens> served(sizes.size());
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t index) {
      served[index] = serve_with(sizes[index], load, server, workload, objective);
      return std::string();
    };
  };
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  sim::work_in_order({0, sizes.size()}, cores, make_worker, [](std::uint64_t, const std::string&) {});
  return served;
}

}  // namespace

BatchedTokensChoice choose_batched_tokens(const sim::SimulatedServer& server, const RequestWorkload& workload,
                                          const sim::SteadyLoad& load, const ServiceLevel& objective,
                                          CarriedRate carried) {
  BatchedTokensChoice choice;
  const ModelShape part =
      sim::part_of_a_device(server.deployment.of(ReplicaRole::both), server.machine, server.model, server.options);
  const int longest = longest_request(workload);
  EngineOptions options = server.options;
  std::vector<int> sizes, roomy;
  for (const int tokens : {2048, 512, 1024, 4096, 8192}) {
    if (tokens < server.options.max_num_seqs) continue;  // a step holds a token of every sequence
    options.max_num_batched_tokens = tokens;             // whose activations leave room for one request at least
    const std::int64_t fit = sim::capacity(server.machine, part, options, longest).max_sequences;
    if (fit >= 1) sizes.push_back(tokens);
    if (fit >= options.max_num_seqs) roomy.push_back(tokens);
  }
  if (!roomy.empty()) sizes = std::move(roomy);  // the others would preempt
  choice.candidates = serve_with_each(sizes, load, server, workload, objective);
  if (choice.candidates.empty())
    throw InputError(server.model.name + " on " + server.machine.name,
                     "no max_num_batched_tokens leaves room for a request; take weights of fewer bits");
  double most = 0;
  for (const BatchedTokens& each : choice.candidates) most = std::max(most, each.full_requests_per_second);
  const double enough = std::min(carried.value_or(most), most / (1 + kServedResolution));
  const bool has_objective = objective.ttft || objective.tpot || objective.latency || objective.slowdown;
  const auto choose = [&](auto figure_of) {
    choice.evaluated.clear();
    for (const BatchedTokens& each : choice.candidates)
      choice.evaluated.push_back({.value = std::to_string(each.max_num_batched_tokens),
                                  .figure = each.full_requests_per_second >= enough ? figure_of(each) : 0});
    const auto verdict = decide(choice.evaluated, {.resolution = kServedResolution, .given_up = 0});
    if (verdict) choice.verdict = *verdict;
    return verdict.has_value();
  };
  choice.by_goodput = has_objective && choose([](const BatchedTokens& each) { return each.goodput; });
  if (!choice.by_goodput)
    static_cast<void>(choose([](const BatchedTokens& each) { return 1 / each.latency_mean.value(); }));
  return choice;
}

}  // namespace dculab::study
