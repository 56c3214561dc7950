#include "study/evaluate/latent_forms.hpp"

#include <utility>

#include "core/error.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"

namespace dculab::study {
namespace {

// New tokens of a sequence, up to its whole context.
[[nodiscard]] std::vector<int> powers_up_to(int context) {
  std::vector<int> counts;
  for (int count = 1; count < context; count *= 2) counts.push_back(count);
  counts.push_back(context);
  return counts;
}

// Forms that no kernel of the stack runs in a phase, although the table prices them.
[[nodiscard]] std::vector<std::string> unserved_forms(const sim::Machine& machine, const ModelShape& model,
                                                      const EngineOptions& options) {
  std::vector<std::string> found;
  for (const auto& [form, name] : {std::pair{LatentForm::expand, "expanded"}, {LatentForm::absorb, "absorbed"}}) {
    EngineOptions both = options;
    both.prefill_latents = both.decode_latents = form;
    try {
      require_served(machine, model, both);
    } catch (const InputError& error) {
      found.push_back(std::string(name) + ": predicted as if it were served; " + error.what());
    }
  }
  return found;
}

}  // namespace

LatentFormsAnswer compare_latent_forms(const LatentFormsQuestion& question) {
  const config::Scenario& scenario = question.scenario;
  LatentFormsAnswer answer;
  answer.machine = resolve_machine(scenario, scenario.machines.front());
  answer.model = resolve_part(scenario, resolve_model(scenario), answer.machine);
  const ModelShape& model = answer.model;
  if (!model.has_latents() || model.has_compressed_entries())
    throw InputError("--model: " + model.name + " has no latent attention; deepseek-v3 has");
  const EngineOptions options = resolve_options(scenario, model, answer.machine);
  answer.unserved = answer.machine.stack.is_own() ? unserved(answer.machine, model, options)
                                                  : unserved_forms(answer.machine, model, options);
  answer.rows = sim::latent_forms(answer.machine, model, options, question.batch, question.context,
                                  powers_up_to(question.context));
  return answer;
}

}  // namespace dculab::study
