// What a stack file may have.
#include <string>
#include <utility>
#include <vector>

#include "config/figure_keys.hpp"
#include "config/stack_keys.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::config {
namespace {

constexpr const char* kWeightFormats =
    "^(f32|f16|bf16|fp8_e4m3|fp8_e5m2|int8|int4|int3|int2|awq|gptq|w8a8|mxfp4|nf4|nf4-double|fp4|fp4-double|llm-int8|"
    "gptq-int[2348](-g[1-9][0-9]*|-channel)?|(ud-)?i?q[1-8]_[0-9a-z_]+)$";

[[nodiscard]] FileKey word_list(std::string key, std::string meaning, std::vector<std::string> words) {
  FileKey list{.key = std::move(key), .meaning = std::move(meaning)};
  FileValue& value = list.values.emplace_back(FileValue{.kind = ValueKind::list});
  value.items.push_back(words.empty() ? FileValue{} : FileValue{.kind = ValueKind::word, .words = std::move(words)});
  return list;
}

[[nodiscard]] FileKey devices_key() {
  std::vector<std::string> vendors;
  for (const auto& [word, vendor] : kVendors) vendors.emplace_back(word);
  std::vector<FileKey> keys{word_list("vendor", "whose devices", vendors),
                            word_list("isa", "instruction sets, `[gfx928]`", {}),
                            word_list("compute_capability", "NVIDIA's, `[\"9.0\"]`", {})};
  for (FileKey& key : keys) key.absent = "all";
  return map_key("devices", "that the stack is for", std::move(keys));
}

template <class Kernels>
[[nodiscard]] std::vector<std::string> kernel_names(const Kernels& kernels) {
  std::vector<std::string> names;
  for (const auto* kernel : kernels) names.emplace_back(kernel->name);
  return names;
}

[[nodiscard]] FileKey kernels_key() {
  const std::vector<std::string> attention = kernel_names(lower::attention_kernels());
  std::vector<FileKey> keys{
      word_list("matmul", "the preferred one first: the first that serves a shape runs it",
                kernel_names(lower::matmul_kernels())),
      word_list("attention_prefill", "the same, of prefills", attention),
      word_list("attention_decode", "the same, of decodes", attention),
      word_list("all_reduce", "the same, of devices that share a model", kernel_names(lower::collective_kernels())),
      word_list("experts", "the same, of the products of a mixture of experts in one launch",
                kernel_names(lower::expert_kernels()))};
  for (FileKey& key : keys) key.absent = "our own";
  keys[3].absent = "`nccl`, on AMD's and Hygon's devices `rccl`";
  keys[4].absent = "each expert's product by `kernels.matmul`";
  return map_key("kernels", "lists of kernels, by what they compute", std::move(keys));
}

[[nodiscard]] FileKey parameters_key() {
  FileKey value = many_keys("<name>", ".", {.kind = ValueKind::whole});
  value.meaning = "a whole number: a constant of a listed kernel's geometry, [below](#parameters)";
  value.absent = "the program's";
  return map_key("parameters", "of kernels", {many_keys("<kernel>", ".", map_of({std::move(value)}))});
}

// Of a section, or of the file itself.
[[nodiscard]] std::vector<FileKey> stack_figure_keys(std::string_view section,
                                                     const std::vector<std::string>& evidence) {
  std::vector<FileKey> keys;
  static const sim::Stack standard{};
  for (const sim::StackField& field : sim::kStackFigures)
    if (field.section() == section)
      keys.push_back(sim::visit_figure(standard, field, [&](const auto& value) {
        FileKey key = figure_key(field.info, value, evidence);
        key.key = field.name();
        return key;
      }));
  return keys;
}

}  // namespace

FileTree stack_tree() {
  std::vector<std::string> evidence;
  for (const auto& [word, same] : kStackEvidence) evidence.emplace_back(word);
  std::vector<FileKey> keys = keys_of<StackKeys>();
  keys.push_back(devices_key());
  keys.push_back(kernels_key());
  keys.push_back(parameters_key());
  keys.push_back(map_key("reached", "what the kernels reach of a machine's peaks, and times that no peak explains",
                         figure_keys(sim::kReached, evidence)));
  append(keys, stack_figure_keys("", evidence));
  for (const auto& [section, meaning] : {std::pair{"host", "times of the host"},
                                         {"sampler", "times to filter logits"},
                                         {"graphs", "steps that the device replays as a graph"},
                                         {"unfused", "work beside the plan's"},
                                         {"entries", "how models with compressed entries run"}})
    keys.push_back(map_key(section, meaning, stack_figure_keys(section, evidence)));
  keys.push_back(map_key("defaults", "what the program does unless told otherwise", keys_of<DefaultsKeys>()));
  keys.push_back(map_key("limits", "what the program takes", keys_of<LimitsKeys>()));
  FileKey caveat = many_keys("<weights>", kWeightFormats, {.kind = ValueKind::text});
  caveat.meaning = "a weight format, `gptq-int8-channel`: what is known to be wrong of prices with it, told with them";
  caveat.absent = "nothing";
  keys.push_back(map_key("caveats", "by weight format", {std::move(caveat)}));
  return {std::string(kStackSchema), "a serving program on a kind of device", {map_of(std::move(keys))}};
}

}  // namespace dculab::config
