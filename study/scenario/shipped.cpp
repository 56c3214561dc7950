#include "study/scenario/shipped.hpp"

#include <algorithm>
#include <string_view>

#include "config/machine_file.hpp"
#include "config/scenario_file.hpp"
#include "config/stack_file.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "model/parameters.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::string attention_name(const LayerKind& kind) {
  if (std::holds_alternative<Mla>(kind.attention)) return "MLA";
  if (std::holds_alternative<CompressedAttention>(kind.attention)) return "compressed";
  if (std::holds_alternative<GatedDeltaNet>(kind.attention)) return "delta net";
  const Heads& heads = kind.gqa().heads;
  return heads.num_key_value_heads == heads.num_attention_heads ? "MHA"
         : heads.num_key_value_heads == 1                       ? "MQA"
                                                                : "GQA";
}

// Of all kinds of layers, each once.
[[nodiscard]] std::string attention_of(const ModelShape& model) {
  std::vector<std::string> names;
  for (const LayerKind& kind : model.kinds)
    if (const std::string name = attention_name(kind); std::ranges::find(names, name) == names.end())
      names.push_back(name);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[nodiscard]] ShippedModel model_of(const std::string& name) {
  const ModelShape model = read_model_shape(find_model(name));
  const Heads heads = model.heads();
  return {.name = name,
          .parameters = num_parameters(model, CountedExperts::all),
          .active_parameters = num_parameters(model, CountedExperts::of_a_token),
          .attention = attention_of(model),
          .num_attention_heads = heads.num_attention_heads,
          .num_key_value_heads = heads.num_key_value_heads,
          .num_layers = model.num_layers(),
          .max_position_embeddings = model.max_position_embeddings};
}

[[nodiscard]] ShippedMachine machine_of(const std::string& name) {
  const sim::Machine machine = config::read_machine_file(find_machine(name));
  const auto peak = machine.peaks.find(Dtype::f16);
  ShippedMachine shipped{.name = name,
                         .description = machine.description,
                         .memory = machine.dram().size,
                         .bandwidth = machine.dram().bandwidth,
                         .peak = {}};
  if (peak != machine.peaks.end())
    shipped.peak = std::max(peak->second.vector, peak->second.matrix.value_or(FlopsPerSecond()));
  return shipped;
}

[[nodiscard]] ShippedStack stack_of(const std::filesystem::path& file) {
  const sim::Stack stack = config::read_stack_file(file);
  return {stack.name, stack.program, stack.description};
}

[[nodiscard]] ShippedScenario scenario_of(const std::string& name) {
  const Node document = config::read_yaml_file(find_scenario(name).string());
  const Node* question = document.find("question");
  return {name, question == nullptr ? "" : question->text};
}

template <class Names, class Item>
void read_all(const Names& names, Item (*read)(const typename Names::value_type&), std::vector<Item>& items,
              std::vector<std::string>& unreadable) {
  for (const auto& name : names) {
    try {
      items.push_back(read(name));
    } catch (const InputError& error) {
      const std::string_view all = error.what();
      unreadable.emplace_back(all.substr(0, all.find('\n')));
    }
  }
}

}  // namespace

Shipped find_shipped(std::optional<ShippedKind> kind) {
  const auto is_asked = [kind](ShippedKind each) { return !kind || *kind == each; };
  Shipped shipped;
  if (is_asked(ShippedKind::models)) read_all(model_names(), model_of, shipped.models, shipped.unreadable);
  if (is_asked(ShippedKind::machines)) read_all(machine_names(), machine_of, shipped.machines, shipped.unreadable);
  if (is_asked(ShippedKind::stacks)) read_all(stack_files(), stack_of, shipped.stacks, shipped.unreadable);
  if (is_asked(ShippedKind::scenarios)) read_all(scenario_names(), scenario_of, shipped.scenarios, shipped.unreadable);
  return shipped;
}

}  // namespace dculab::study
