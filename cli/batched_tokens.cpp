#include "cli/batched_tokens.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/memory/capacity.hpp"

namespace dculab::cli {
namespace {

constexpr double kTie = 0.02;

// Of as many prompts as fit into a step, or a part of one.
[[nodiscard]] Seconds prompt_token(const sim::SimulatedServer& server, int tokens, int prompt_tokens) {
  const int prompts = std::max(1, tokens / prompt_tokens), each = std::min(tokens, prompt_tokens);
  const StepPlan plan = plan_step(server.model, server.options, uniform_batch(Phase::prefill, prompts, each));
  return sim::price_step(server.machine, plan).seconds / (static_cast<double>(prompts) * each);
}

[[nodiscard]] BatchedTokens serve_with(int tokens, int prompt_tokens, sim::SimulatedServer server,
                                       const RequestWorkload& workload, const ServiceLevel& objective) {
  server.options.max_num_batched_tokens = tokens;
  const sim::ServingRun run = sim::simulate(server, workload, objective);
  const ServingMetrics& metrics = run.metrics;
  return {.max_num_batched_tokens = tokens,
          .goodput = static_cast<double>(metrics.requests_within_objective()) / metrics.duration().value(),
          .slo_attainment =
              static_cast<double>(metrics.requests_within_objective()) / static_cast<double>(metrics.requests()),
          .ttft_p90 = metrics.ttft().quantile(0.9),
          .tpot_p90 = metrics.tpot().count() > 0 ? metrics.tpot().quantile(0.9) : Seconds(),
          .latency_mean = metrics.latency().mean(),
          .preemptions = run.num_preemptions,
          .prompt_token = prompt_token(server, tokens, prompt_tokens)};
}

}  // namespace

BatchedTokensChoice choose_batched_tokens(const sim::SimulatedServer& server, const RequestWorkload& workload,
                                          const sim::SteadyLoad& load, const ServiceLevel& objective) {
  BatchedTokensChoice choice;
  EngineOptions options = server.options;
  std::vector<double> goodputs, speeds;
  for (const int tokens : {2048, 512, 1024, 4096, 8192}) {
    if (tokens < server.options.max_num_seqs) continue;  // a step holds a token of every sequence
    options.max_num_batched_tokens = tokens;             // whose activations leave room for one request at least
    const int request = load.prompt_tokens + load.output_tokens;
    if (sim::capacity(server.machine, server.model, options, request).max_sequences < 1) continue;
    choice.candidates.push_back(serve_with(tokens, load.prompt_tokens, server, workload, objective));
    goodputs.push_back(choice.candidates.back().goodput);
    speeds.push_back(1 / choice.candidates.back().latency_mean.value());
  }
  if (choice.candidates.empty())
    throw InputError(server.model.name + " on " + server.machine.name,
                     "no max_num_batched_tokens leaves room for a request; take weights of fewer bits");
  const bool has_objective = objective.ttft || objective.tpot || objective.latency || objective.slowdown;
  auto preferred = has_objective ? sim::prefer(goodputs, kTie) : std::nullopt;
  choice.by_goodput = preferred.has_value();
  if (!preferred) preferred = sim::prefer(speeds, kTie);
  if (preferred) {
    choice.chosen = preferred->chosen;
    choice.runner_up = preferred->runner_up;
  }
  return choice;
}

}  // namespace dculab::cli
