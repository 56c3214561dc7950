#include "sim/study/offline_run.hpp"

#include <algorithm>
#include <cmath>

#include "model/plan_step.hpp"
#include "sim/memory/capacity.hpp"

namespace dculab::sim {
namespace {

// Of a sequence, from its first answered token to its last: the last block is held whole.
[[nodiscard]] double mean_blocks(const OfflineRequests& work, const KvDemand& demand, int block_size) {
  std::int64_t blocks = 0;
  for (int generated = 1; generated <= work.output_tokens; ++generated)
    blocks += (demand(work.prompt_tokens + generated) + block_size - 1) / block_size;
  return static_cast<double>(blocks) / work.output_tokens;
}

void choose_batch(OfflineRun& run, const Machine& machine, const ModelShape& model, const EngineOptions& options,
                  const OfflineRequests& work) {
  const std::int64_t fit = sequences_that_fit(machine, model, options, work);
  run.batch = work.requests;
  if (options.max_num_seqs < run.batch) {
    run.batch = options.max_num_seqs;
    run.limit = BatchLimit::max_num_seqs;
  }
  if (fit < run.batch) {
    run.batch = static_cast<int>(fit);
    run.limit = BatchLimit::memory;
  }
}

[[nodiscard]] std::string_view spent_on(OpKind kind) {
  switch (kind) {
    case OpKind::matmul:
      return "matmul";
    case OpKind::attention_prefill:
    case OpKind::attention_decode:
    case OpKind::update_block_bounds:
    case OpKind::choose_critical_blocks:
      return "attention";
    default:
      return "other";
  }
}

}  // namespace

std::string_view name(BatchLimit limit) {
  switch (limit) {
    case BatchLimit::requests:
      return "requests";
    case BatchLimit::max_num_seqs:
      return "max_num_seqs";
    case BatchLimit::memory:
      return "memory";
  }
  return "?";
}

std::int64_t sequences_that_fit(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                const OfflineRequests& work) {
  const Capacity room = capacity(machine, model, options, work.prompt_tokens + work.output_tokens);
  const auto fit = static_cast<std::int64_t>(static_cast<double>(room.num_blocks) /
                                             mean_blocks(work, room.demand, options.block_size));
  return room.kept_apart > Bytes() ? std::min<std::int64_t>(fit, options.max_num_seqs) : fit;
}

Batch decode_batch(const OfflineRequests& work, int batch) {
  const int longest = work.prompt_tokens + work.output_tokens;
  Batch result;
  for (int index = 0; index < batch; ++index) {
    const int generated = static_cast<int>((index + 0.5) * work.output_tokens / batch);
    const int computed = work.walked == WalkedBlocks::own ? work.prompt_tokens + generated : longest - 1;
    result.sequences.push_back({.id = index, .num_computed_tokens = computed});
  }
  return result;
}

OfflineRun offline_run(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                       const OfflineRequests& work) {
  OfflineRun run;
  choose_batch(run, machine, model, options, work);
  if (run.batch == 0) return run;
  const int prompts = std::clamp(options.max_num_batched_tokens / work.prompt_tokens, 1, run.batch);
  const double requests = work.requests;
  run.measured_run.steps.push_back(
      {plan_step(model, options, uniform_batch(Phase::prefill, prompts, work.prompt_tokens)), requests / prompts});
  run.measured_run.steps.push_back(
      {plan_step(model, options, decode_batch(work, run.batch)), requests * work.output_tokens / run.batch});
  run.total_time = price_run(machine, run.measured_run);
  const double seconds = run.total_time.value();
  run.latency_mean = run.total_time * (run.batch / requests);
  run.requests_per_second = requests / seconds;
  run.tokens_per_second = run.requests_per_second * (work.prompt_tokens + work.output_tokens);
  run.output_tokens_per_second = run.requests_per_second * work.output_tokens;
  return run;
}

std::map<std::string, Seconds> run_shares(const Machine& machine, const MeasuredRun& measured_run) {
  std::map<std::string, Seconds> shares;
  for (const RunStep& step : measured_run.steps) {
    const StepPrice price = price_step(machine, step.plan);
    shares["host"] += step.times * price.host;
    for (std::size_t index = 0; index < price.ops.size(); ++index) {
      const OpPrice& op = price.ops[index];
      const std::string cause =
          std::string(spent_on(step.plan.ops[index].kind)) + ", " + std::string(name(op.bound, machine));
      shares[cause] += step.times * op.all_executions();
    }
  }
  return shares;
}

}  // namespace dculab::sim
