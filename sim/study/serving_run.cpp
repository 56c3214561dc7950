#include "sim/study/serving_run.hpp"

#include <algorithm>
#include <iterator>

#include "core/error.hpp"
#include "core/scheduler.hpp"
#include "core/workload.hpp"
#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "sim/hardware/device_link.hpp"
#include "sim/memory/capacity.hpp"

namespace dculab::sim {
namespace {

constexpr std::int64_t kScheduleSamples = 12;
constexpr std::int64_t kDecodeSamples = 8;

[[nodiscard]] int sharing_devices(const Server& server) {
  return server.machine.stack.split == Split::tensor ? server.devices : 1;
}

// Weights in a format that options.weights only resembles.
void scale_layer_weights(StepPlan& plan, double scale) {
  for (Op& op : plan.ops) {
    if (op.kind != OpKind::matmul || op.stage != Stage::layer) continue;
    for (Operand& operand : op.operand_storage)
      if (operand.role == OperandRole::weight) operand.unique *= scale;
  }
}

[[nodiscard]] RunStep make_step(const Server& server, const Batch& batch, double times) {
  RunStep step{plan_step(shard(server.model, server.options.weights, sharing_devices(server)), server.options, batch),
               times};
  scale_layer_weights(step.plan, server.layer_weight_scale);
  return step;
}

// Items 0 .. count - 1 as at most `samples` runs of nearly equal length: middle and length of each.
struct Run {
  std::int64_t middle;
  double length;
};
[[nodiscard]] std::vector<Run> equal_runs(std::int64_t count, std::int64_t samples) {
  std::vector<Run> runs;
  const std::int64_t parts = std::min(count, samples);
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = part * count / parts;
    const std::int64_t end = (part + 1) * count / parts;
    runs.push_back({(first + end - 1) / 2, static_cast<double>(end - first)});
  }
  return runs;
}

[[nodiscard]] SchedulerLimits scheduler_limits(const Server& server) {
  Machine memory = server.machine;
  if (server.machine.stack.split == Split::layers) memory.memory.back().size = memory.dram().size * server.devices;
  const ModelShape part = shard(server.model, server.options.weights, sharing_devices(server));
  const Capacity room = capacity(memory, part, server.options, 1);
  return {.num_blocks = static_cast<int>(std::min<std::int64_t>(room.num_blocks, kMostBlocks)),
          .max_position_embeddings = server.model.max_position_embeddings,
          .kv_demand = room.demand};
}

// Calls visit(batch) for every step of the schedule.
template <class Visit>
void run_schedule(const Server& server, const Request& each, int requests, Visit visit) {
  const SchedulerLimits limits = scheduler_limits(server);
  if (limits.num_blocks < 1)
    throw InputError(server.model.name + " leaves no room for a KV block in the memory of " +
                     std::to_string(server.devices) + " x " + server.machine.name);
  Scheduler scheduler(server.options, limits, BatchContents::lengths_only);
  if (const auto refusal = scheduler.refusal(each)) throw InputError(*refusal);
  for (int index = 0; index < requests; ++index) {
    Request request = each;
    request.id = index;
    require_room_for(request, index, std::int64_t{index} * std::ssize(request.prompt_token_ids));
    scheduler.submit(std::move(request));
  }
  std::vector<Verdict> sampled;
  while (!scheduler.idle()) {
    visit(scheduler.schedule().batch);
    sampled.assign(scheduler.sampled().size(), {.tokens = {0}});
    scheduler.finish_step(sampled, Seconds{});
    static_cast<void>(scheduler.take_finished());
  }
}

[[nodiscard]] bool has_prefill(const Batch& batch) {
  return !batch.sequences.empty() && batch.sequences.front().phase == Phase::prefill;
}

// Numbers the steps with and those without prefill separately.
struct StepCounter {
  std::int64_t prefills = 0;
  std::int64_t decodes = 0;

  std::int64_t next(const Batch& batch) { return has_prefill(batch) ? prefills++ : decodes++; }
};

}  // namespace

std::vector<std::string> problems(const Server& server) {
  std::vector<std::string> found = problems(server.model);
  for (std::string& problem : problems(server.options)) found.push_back(std::move(problem));
  for (std::string& problem :
       sharing_problems(server.machine, server.model, server.options.weights, sharing_devices(server)))
    found.push_back(std::move(problem));
  return found;
}

MeasuredRun served_requests(const Server& server, int requests, int prompt_tokens, int output_tokens) {
  Request each;
  each.prompt_token_ids.assign(static_cast<std::size_t>(prompt_tokens), 0);
  each.max_tokens = output_tokens;
  each.eos = EosHandling::ignore;
  StepCounter all;
  run_schedule(server, each, requests, [&all](const Batch& batch) { all.next(batch); });

  const std::vector<Run> prefills = equal_runs(all.prefills, kScheduleSamples);
  const std::vector<Run> decodes = equal_runs(all.decodes, kScheduleSamples);
  auto next_prefill = prefills.begin();
  auto next_decode = decodes.begin();
  MeasuredRun measured_run;
  StepCounter seen;
  // The schedule is deterministic: the second time its steps are kept.
  run_schedule(server, each, requests, [&](const Batch& batch) {
    const std::int64_t index = seen.next(batch);
    auto& next = has_prefill(batch) ? next_prefill : next_decode;
    const auto end = has_prefill(batch) ? prefills.end() : decodes.end();
    if (next == end || next->middle != index) return;
    measured_run.steps.push_back(make_step(server, batch, next->length));
    ++next;
  });
  return measured_run;
}

MeasuredRun prefill(const Server& server, int prompt_tokens, int cached_tokens) {
  MeasuredRun measured_run;
  for (int done = 0; done < prompt_tokens;) {
    const int chunk = std::min(server.options.max_num_batched_tokens, prompt_tokens - done);
    Batch batch;
    batch.sequences.push_back({.phase = Phase::prefill,
                               .num_computed_tokens = cached_tokens + done,
                               .num_new_tokens = chunk,
                               .num_logits = done + chunk == prompt_tokens ? 1 : 0});
    measured_run.steps.push_back(make_step(server, batch, 1));
    done += chunk;
  }
  measured_run.amount = prompt_tokens;
  return measured_run;
}

MeasuredRun decode(const Server& server, int batch, int first_context, int last_context) {
  MeasuredRun measured_run;
  const int steps = last_context - first_context + 1;
  for (const Run& run : equal_runs(steps, kDecodeSamples)) {
    const int context = first_context + static_cast<int>(run.middle);
    measured_run.steps.push_back(make_step(server, uniform_batch(Phase::decode, batch, context), run.length));
  }
  measured_run.amount = static_cast<double>(steps) * batch;
  return measured_run;
}

}  // namespace dculab::sim
