#include "sim/serving/simulated_server.hpp"

#include <algorithm>
#include <limits>

#include "core/scheduler.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/simulated_executor.hpp"

namespace dculab::sim {
namespace {

class AlwaysTheSame final : public TokenSource {
 public:
  TokenId next_token(const Sequence&, int) override { return 0; }
};

[[nodiscard]] int num_blocks(const SimulatedServer& server) {
  if (server.num_blocks) return *server.num_blocks;
  const std::int64_t fit = capacity(server.machine, server.model, server.options, 1).num_blocks;
  return static_cast<int>(std::min<std::int64_t>(fit, std::numeric_limits<int>::max()));
}

void add_bounds(const SimulatedExecutor& executor, std::map<std::string, Seconds>& time_by_bound) {
  const StepPrice& price = executor.price();
  time_by_bound["host"] += price.host;
  for (const OpPrice& op : price.ops)
    time_by_bound[std::string(name(op.bound, executor.machine()))] += op.all_executions();
}

}  // namespace

std::vector<std::string> problems(const SimulatedServer& server) {
  std::vector<std::string> found = problems(server.model);
  for (std::string& problem : problems(server.options)) found.push_back(std::move(problem));
  if (!found.empty()) return found;
  for (std::string& problem : problems(server.options, server.model)) found.push_back(std::move(problem));
  if (found.empty() && num_blocks(server) < 1)
    found.push_back(server.model.name + " leaves no room for a KV block in the memory of " + server.machine.name);
  return found;
}

ServingRun simulate(const SimulatedServer& server, const RequestWorkload& workload, const ServiceLevel& objective,
                    const std::function<void(const ServedStep&)>& on_step) {
  ServingRun run;
  run.metrics = ServingMetrics(objective);
  run.num_blocks = num_blocks(server);
  Scheduler scheduler(server.options, {run.num_blocks, server.model.max_position_embeddings},
                      BatchContents::lengths_only);
  SimulatedExecutor executor(server.machine, server.model, server.options);
  AlwaysTheSame tokens;
  VirtualClock clock;
  const auto see_step = [&](const ServedStep& step) {
    run.timeline.add(step);
    add_bounds(executor, run.time_by_bound);
    if (on_step) on_step(step);
  };
  ServingLoop loop(
      {server.model, server.options, scheduler, executor, tokens, clock, RequestRecords::drop},
      {.on_finished = [&run](const Sequence& sequence) { run.metrics.add(sequence); }, .on_step = see_step});
  RequestSource source(workload);
  loop.run(source);
  run.num_steps = loop.report().num_steps;
  run.num_preemptions = scheduler.num_preemptions();
  run.busy = loop.report().executor_time;
  return run;
}

}  // namespace dculab::sim
