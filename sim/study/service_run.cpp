#include "sim/study/service_run.hpp"

#include <algorithm>

#include "sim/cost/micro_batches.hpp"

namespace dculab::sim {
namespace {

constexpr const char* kExchange = "dispatch and combine";

[[nodiscard]] const char* term_of(const Op& op) {
  switch (op.kind) {
    case OpKind::matmul:
      return op.weight == WeightSlot::expert_up_proj || op.weight == WeightSlot::expert_down_proj ? "experts"
                                                                                                  : "other products";
    case OpKind::attention_prefill:
    case OpKind::attention_decode:
      return "attention";
    case OpKind::dispatch_tokens:
    case OpKind::return_tokens:
      return kExchange;
    case OpKind::all_reduce:
    case OpKind::all_gather:
      return "all-reduce and gather";
    default:
      return "other kernels";
  }
}

void add_ops(const StepPlan& plan, const StepPrice& price, std::map<std::string, Seconds>& terms) {
  for (std::size_t index = 0; index < plan.ops.size(); ++index)
    terms[term_of(plan.ops[index])] += price.ops[index].all_executions();
}

// Groups with sequences of their own in a node.
[[nodiscard]] double groups_of_a_node(const ReplicaDevices& devices, const Machine& machine) {
  const double node = machine.peers ? 1 + *machine.peers : devices.devices();
  return node / (static_cast<double>(devices.devices()) / devices.ranks());
}

// Sums the steps up, and what they spend.
void add_up(const Machine& machine, double factor, ServicePool& pool) {
  for (RunStep& step : pool.measured_run.steps) {
    step.times *= factor;
    pool.steps += step.times * price_run_step(machine, step);
    for (const auto& [term, time] : step_terms(machine, step)) pool.terms[term] += step.times / factor * time;
    pool.terms["rebalancing"] += (1 - 1 / factor) * step.times * price_run_step(machine, step);
  }
}

[[nodiscard]] int hits_of(const Deployment& deployment, const EngineOptions& options, int prompt) {
  if (!deployment.kv_store || !deployment.kv_store->hit_rate) return 0;
  const int blocks = static_cast<int>(*deployment.kv_store->hit_rate * prompt) / options.block_size;
  return std::min(blocks * options.block_size, prompt - 1);
}

[[nodiscard]] Batch prefill_batch(int prompts, int computed, int added, bool ends) {
  Batch batch;
  for (int index = 0; index < prompts; ++index)
    batch.sequences.push_back({.id = index,
                               .phase = Phase::prefill,
                               .num_computed_tokens = computed,
                               .num_new_tokens = added,
                               .num_logits = ends ? 1 : 0});
  return batch;
}

}  // namespace

Seconds ServicePool::term(const std::string& name) const {
  const auto found = terms.find(name);
  return found == terms.end() ? Seconds() : found->second;
}

PoolBound bound_of(const ServicePool& pool) {
  if (pool.period() != pool.steps) return {pool.period() == pool.reading ? "KV reads" : "KV transfer"};
  const char* largest = *std::ranges::max_element(kPoolTerms, {}, [&](const char* each) { return pool.term(each); });
  return {largest, pool.term(largest) / pool.steps};
}

std::map<std::string, Seconds> step_terms(const Machine& machine, const RunStep& step) {
  std::map<std::string, Seconds> terms;
  const StepPrice first = price_step(machine, step.plan);
  add_ops(step.plan, first, terms);
  terms["host"] = first.host + first.sampling;
  if (!step.beside) return terms;
  const StepPrice second = price_step(machine, *step.beside);
  add_ops(*step.beside, second, terms);
  const OverlappedPrice both = overlapped(machine, step.plan, first, *step.beside, second);
  terms["host"] = both.host + both.sampling;
  const Seconds exposed = terms[kExchange] - both.hidden, rounding = 1e-9 * both.hidden;
  terms[kExchange] = exposed > rounding ? exposed : Seconds();
  terms["hidden exchange"] = both.hidden;
  return terms;
}

ServicePool prefill_pool(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                         const Deployment& deployment, const OfflineRequests& work) {
  const ReplicaDevices devices = deployment.of(ReplicaRole::prefill);
  const ModelShape part = part_of_layers(devices, machine, model, options);
  const int hits = hits_of(deployment, options, work.prompt_tokens), added = work.prompt_tokens - hits;
  const int most = options.max_num_batched_tokens;
  ServicePool pool;
  const std::int64_t fit = sequences_that_fit(machine, part_of_a_device(devices, machine, model, options), options,
                                              {1, work.prompt_tokens, 1, work.walked});
  if (fit < 1) return pool;
  const int asked = std::clamp(most / added, 1, options.max_num_seqs);
  pool.limit = fit < asked ? BatchLimit::memory : BatchLimit::requests;
  pool.batch = static_cast<int>(std::min<std::int64_t>(asked, fit));
  pool.tokens = std::int64_t{pool.batch} * added;
  for (int done = 0; done < added; done += most) {
    const int chunk = std::min(most, added - done);
    pool.measured_run.steps.push_back(run_step(part, options,
                                               prefill_batch(pool.batch, hits + done, chunk, done + chunk == added),
                                               devices.experts.micro_batches, 1));
  }
  add_up(machine, rebalancing_factor(devices, machine, part, options), pool);
  const double prompts = pool.batch;
  if (hits > 0) pool.reading = prompts * store_reading_time(deployment, machine, model, options.kv_cache_dtype, hits);
  pool.sending = prompts * kv_sending_time(deployment, machine, model, options.kv_cache_dtype, work.prompt_tokens);
  pool.tokens_per_second = prompts * work.prompt_tokens / pool.period().value() * groups_of_a_node(devices, machine);
  return pool;
}

ServicePool decode_pool(const Machine& machine, const ModelShape& model, EngineOptions options,
                        const Deployment& deployment, const OfflineRequests& work) {
  const ReplicaDevices devices = deployment.of(ReplicaRole::decode);
  options.max_num_batched_tokens = options.max_num_seqs;  // a token of each
  const ModelShape part = part_of_layers(devices, machine, model, options);
  const std::int64_t fit =
      sequences_that_fit(machine, part_of_a_device(devices, machine, model, options), options, work);
  ServicePool pool;
  if (fit < options.max_num_seqs) pool.limit = BatchLimit::memory;
  pool.batch = static_cast<int>(std::min<std::int64_t>(fit, options.max_num_seqs));
  if (pool.batch < 1) return pool;
  pool.tokens = pool.batch;
  pool.measured_run.steps.push_back(
      run_step(part, options, decode_batch(work, pool.batch), devices.experts.micro_batches, 1));
  add_up(machine, rebalancing_factor(devices, machine, part, options), pool);
  pool.tokens_per_second = pool.batch / pool.period().value() * groups_of_a_node(devices, machine);
  return pool;
}

ServiceRun service_run(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                       const Deployment& deployment, const OfflineRequests& work) {
  return {prefill_pool(machine, model, options, deployment, work),
          decode_pool(machine, model, options, deployment, work)};
}

}  // namespace dculab::sim
