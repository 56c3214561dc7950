#include "study/decide/batched_tokens.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/memory/capacity.hpp"

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

// Requests of the load's mean lengths (drawn ones would make the rate theirs) wait from the beginning, twice and three
// times as many as run at a time: filling and draining take as long in both runs, and the difference is what the engine
// does with a full batch.
void serve_full(const sim::SimulatedServer& server, RequestWorkload workload, const sim::SteadyLoad& load,
                BatchedTokens& result) {
  workload.arrival = ArrivalKind::all_at_once;
  workload.recorded.clear();
  workload.prompt = {.center = static_cast<double>(load.prompt_tokens)};
  workload.output = {.center = static_cast<double>(load.output_tokens)};
  const sim::ReplicaDevices devices = server.deployment.of(ReplicaRole::both);
  const int batch = server.options.max_num_seqs * devices.ranks() * devices.pipeline_parallel_size;
  workload.requests = 2 * batch;
  const Seconds shorter = sim::simulate(server, workload, {}).metrics.duration();
  workload.requests = 3 * batch;
  const ServingMetrics longer = sim::simulate(server, workload, {}).metrics;
  const bool steady = longer.duration() > shorter;
  result.full_requests_per_second =
      steady ? batch / (longer.duration() - shorter).value() : 3 * batch / longer.duration().value();
  if (longer.tpot().count() > 0) result.full_tpot = longer.tpot().quantile(0.5);
}

[[nodiscard]] int longest_request(const RequestWorkload& workload) {
  std::size_t longest = 0;
  RequestSource source(workload);
  for (auto request = source.next(); request; request = source.next())
    longest = std::max(longest, request->prompt_token_ids.size() + static_cast<std::size_t>(request->max_tokens));
  return static_cast<int>(longest);
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
  serve_full(server, workload, load, result);
  return result;
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
  for (const int tokens : {2048, 512, 1024, 4096, 8192}) {
    if (tokens < server.options.max_num_seqs) continue;  // a step holds a token of every sequence
    options.max_num_batched_tokens = tokens;             // whose activations leave room for one request at least
    if (sim::capacity(server.machine, part, options, longest).max_sequences < 1) continue;
    choice.candidates.push_back(serve_with(tokens, load, server, workload, objective));
  }
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
