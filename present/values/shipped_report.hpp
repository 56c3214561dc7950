// What there is to choose among: models, machines, stacks and scenarios, a line each.
#pragma once

#include <string_view>
#include <tuple>

#include "present/output/field_json.hpp"
#include "present/output/report.hpp"
#include "study/scenario/shipped.hpp"

namespace dculab::present {

[[nodiscard]] Report shipped_report(const study::Shipped& shipped);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<study::ShippedModel> {
  using Model = study::ShippedModel;
  static constexpr std::string_view id = "shipped_model";
  static constexpr std::string_view doc = "A model that is shipped.";
  static constexpr auto fields = std::tuple(
      field("model", "what --model takes", &Model::name),
      field("parameters", "of all experts", unit::count, &Model::parameters),
      field("active_parameters", "of the experts that a token goes through", unit::count, &Model::active_parameters),
      field("attention", "of all kinds of layers: MHA, GQA, MQA, MLA, compressed, delta net", &Model::attention),
      field("num_attention_heads", "query heads", unit::count, &Model::num_attention_heads),
      field("num_key_value_heads", "KV heads", unit::count, &Model::num_key_value_heads),
      field("num_layers", "all of them", unit::count, &Model::num_layers),
      field("max_position_embeddings", "the longest context", unit::tokens, &Model::max_position_embeddings));
};

template <>
struct FieldList<study::ShippedMachine> {
  using Machine = study::ShippedMachine;
  static constexpr std::string_view id = "shipped_machine";
  static constexpr std::string_view doc = "A machine that is shipped.";
  static constexpr auto fields = std::tuple(
      field("machine", "what --machine takes", &Machine::name), field("memory_bytes", "of its DRAM", &Machine::memory),
      field("bytes_per_second", "of its DRAM", &Machine::bandwidth),
      field("flop_per_second", "its peak in FP16, where that is known", &Machine::peak),
      field("description", "what it is", &Machine::description));
};

template <>
struct FieldList<study::ShippedStack> {
  using Stack = study::ShippedStack;
  static constexpr std::string_view id = "shipped_stack";
  static constexpr std::string_view doc = "A stack that is shipped.";
  static constexpr auto fields = std::tuple(field("stack", "what --stack takes", &Stack::name),
                                            field("program", "which --stack takes, too", &Stack::program),
                                            field("description", "its version and its kernels", &Stack::description));
};

template <>
struct FieldList<study::ShippedScenario> {
  using Scenario = study::ShippedScenario;
  static constexpr std::string_view id = "shipped_scenario";
  static constexpr std::string_view doc = "A scenario that is shipped.";
  static constexpr auto fields = std::tuple(field("scenario", "what study and simulate take", &Scenario::name),
                                            field("question", "what it asks", &Scenario::question));
};

template <>
struct FieldList<study::Shipped> {
  using Self = study::Shipped;
  static constexpr std::string_view id = "shipped";
  static constexpr std::string_view doc = "What is shipped, of the kinds that are asked for.";
  static constexpr std::string_view csv_rows = "models|machines|stacks|scenarios";
  static constexpr auto fields =
      std::tuple(field("models", "by name", [](const Self& all) { return unless_empty(all.models); }),
                 field("machines", "by name", [](const Self& all) { return unless_empty(all.machines); }),
                 field("stacks", "by name", [](const Self& all) { return unless_empty(all.stacks); }),
                 field("scenarios", "by name", [](const Self& all) { return unless_empty(all.scenarios); }));
};

}  // namespace dculab
