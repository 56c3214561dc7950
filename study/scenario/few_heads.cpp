#include "study/scenario/few_heads.hpp"

#include "model/folder/model_config.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/refuse.hpp"

namespace dculab::study {
namespace {

constexpr const char* kGroupsKey = "engine.groups_by_load";

}  // namespace

std::optional<FewHeads> resolve_few_heads(const config::Scenario& scenario, const ModelShape& model,
                                          const EngineOptions& options) {
  if (!options.groups_by_load) return std::nullopt;
  const config::FewHeadsChoice& choice = scenario.few_heads;
  FewHeads few = choice.model.empty()
                     ? FewHeads{with_kv_heads(model, choice.num_key_value_heads), FewWeights::kv_projections}
                     : FewHeads{read_model_shape(find_model(choice.model)), FewWeights::all};
  refuse_key(scenario, kGroupsKey, few_heads_problems(model, few.model, options));
  return few;
}

void refuse_groups_by_load(const config::Scenario& scenario, const std::string& what) {
  if (scenario.options.groups_by_load)
    refuse_key(scenario, kGroupsKey, {what + "; groups by load are of requests that are served over time"});
}

}  // namespace dculab::study
