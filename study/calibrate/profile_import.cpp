#include "study/calibrate/profile_import.hpp"

#include <filesystem>

#include "config/number_text.hpp"
#include "core/error.hpp"
#include "study/scenario/refuse.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] config::ProfiledWork resolve_work(const ImportQuestion& question, const sim::Machine& machine) {
  const config::Scenario& scenario = question.scenario;
  config::ProfiledWork work;
  work.model = resolve_model(scenario);
  work.options = resolve_options(scenario, work.model, machine);
  const Batch batch = resolve_batch(scenario.workload, work.model, work.options);
  work.phase = scenario.workload.phase;
  work.batch = static_cast<int>(batch.sequences.size());
  work.context = scenario.workload.context_tokens;
  work.new_tokens = question.new_tokens;
  work.growth = question.growth.value_or(work.phase == Phase::decode ? 1 : 0);
  const std::string given = "--new-tokens " + std::to_string(work.new_tokens);
  if (work.phase == Phase::decode && work.new_tokens > 1)
    throw InputError(given + ": a decode step has one new token per sequence; leave it out, or say --phase prefill");
  if (work.new_tokens > work.context)
    throw InputError(given + ": more than --context " + std::to_string(work.context) +
                     ", which counts them too; give the tokens cached once the step is done");
  return work;
}

[[nodiscard]] std::string timing_text(const ImportedProfile& import) {
  const config::ImportSummary& summary = import.steps.summary;
  std::string text = "GPU timestamps of " + std::string(name(import.profile.profiler)) + ", median of " +
                     std::to_string(summary.steps_imported) + " steps";
  if (import.steps.rows.size() > 1) text += " in " + std::to_string(import.steps.rows.size()) + " rows";
  text += import.choices.time == config::StepTime::period ? ", from a step's first kernel to the next step's"
                                                          : ", from a step's first kernel to the end of its last";
  return text + "; " + config::percent(summary.other_share()) + " of the kernel time serves no op";
}

}  // namespace

ImportedProfile import_profile(const ImportQuestion& question) {
  const config::Scenario& scenario = question.scenario;
  refuse_unsupported(scenario);
  require_one_device(scenario, "a profile");
  const sim::Machine machine = resolve_machine(scenario, scenario.machines.front());
  ImportedProfile import;
  import.work = resolve_work(question, machine);
  import.choices = question.choices;
  const bool decodes = import.work.phase == Phase::decode;
  import.choices.time = question.time.value_or(decodes ? config::StepTime::period : config::StepTime::span);
  import.profile = config::read_profile_file(question.profile, question.profiler);
  import.steps = config::import_steps(import.profile, import.work, import.choices);
  TraceHeader& header = import.trace.header;
  header.machine = machine.name;
  header.device = import.profile.kernels.front().device;
  header.build = "imported from " + std::filesystem::path(question.profile).filename().string();
  header.timing = timing_text(import);
  import.trace.steps = import.steps.rows;
  return import;
}

}  // namespace dculab::study
