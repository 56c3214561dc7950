#include "study/measure/replayed_ops.hpp"

#include "core/error.hpp"
#include "engine/recording/op_recorder.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] ReplayedOp replay_op(const OpToReplay& asked, sim::ReuseMeasurement reuse) {
  const config::Scenario& scenario = asked.scenario;
  refuse_unsupported(scenario);
  require_one_device(scenario, "a replay");
  const sim::Machine machine = resolve_machine(scenario, scenario.machines.front());
  if (machine.kind != lower::DeviceKind::gpu)
    throw InputError(machine.name + " is a CPU; the kernels that are recorded are those of GPUs");
  const ModelShape model = resolve_model(scenario);
  const EngineOptions options = resolve_options(scenario, model, machine);
  const engine::RecordedOp recorded =
      engine::record_op(model, options, resolve_batch(scenario.workload, model, options), asked.op,
                        machine.waves.wave_size, lower::dculab_gpu::units_of(machine));
  return {model.heads().num_key_value_heads, options.block_size,
          sim::compare_with_replay(machine, recorded.plan, recorded.launches, reuse)};
}

}  // namespace

std::vector<ReplayedOp> replay_ops(const std::vector<OpToReplay>& ops, sim::ReuseMeasurement reuse,
                                   const engine::BenchProgress& progress) {
  std::vector<ReplayedOp> replayed;
  for (const OpToReplay& asked : ops) {
    replayed.push_back(replay_op(asked, reuse));
    progress("replaying", static_cast<double>(replayed.size()) / static_cast<double>(ops.size()));
  }
  return replayed;
}

}  // namespace dculab::study
