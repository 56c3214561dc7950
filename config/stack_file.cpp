#include "config/stack_file.hpp"

#include "config/file_kind.hpp"
#include "config/kernel_parameters.hpp"
#include "config/stack_keys.hpp"
#include "config/weight_format_text.hpp"
#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::config {
namespace {

class StackReader {
 public:
  StackReader(const Node& document, ProblemList& problems) : document_(document), problems_(problems) {}

  sim::Stack read() {
    MapReader reader(&document_, "", problems_);
    read_keys<StackKeys>(reader, stack_);
    read_devices(reader.optional_map("devices"));
    read_kernels(reader.optional_map("kernels"));
    read_parameters(reader.optional_map("parameters"), stack_);
    read_reached(reader.optional_map("reached"));
    read_group(reader, "");
    for (const char* section : {"host", "sampler", "graphs", "unfused", "entries"})
      read_figures(reader.optional_map(section), section);
    read_section<DefaultsKeys>(reader.optional_map("defaults"), stack_.defaults);
    read_section<LimitsKeys>(reader.optional_map("limits"), stack_.limits);
    read_caveats(reader.optional_map("caveats"));
    reader.finish();
    return std::move(stack_);
  }

 private:
  void read_devices(MapReader reader) {
    if (const Node* vendors = reader.optional("vendor")) {
      if (vendors->kind != NodeKind::list) return reader.complain(*vendors, "devices.vendor: must be a list");
      for (const Node& vendor : vendors->children)
        reader.read_choice(vendor, stack_.devices.vendors.emplace_back(), kVendors);
    }
    read_list(reader, "isa", stack_.devices.isas);
    read_list(reader, "compute_capability", stack_.devices.compute_capabilities);
    reader.finish();
  }

  void read_caveats(MapReader reader) {
    if (!reader.is_present()) return;
    for (const Node& text : reader.node()->children) {
      if (reader.optional(text.key) != &text) continue;
      try {
        reader.read(text, stack_.caveats[weight_format_text(parse_weight_format(text.key))]);
      } catch (const InputError& error) {
        reader.complain(text, reader.path_to(text.key) + ": " + error.what());
      }
    }
    reader.finish();
  }

  void read_kernels(MapReader reader) {
    lower::Kernels& kernels = stack_.kernels;
    read_libraries(reader, "matmul", lower::matmul_kernels(), kernels.matmul);
    read_libraries(reader, "attention_prefill", lower::attention_kernels(), kernels.attention_prefill);
    read_libraries(reader, "attention_decode", lower::attention_kernels(), kernels.attention_decode);
    read_libraries(reader, "all_reduce", lower::collective_kernels(), kernels.all_reduce);
    read_libraries(reader, "experts", lower::expert_kernels(), kernels.experts);
    refuse_other_phase(reader, "attention_prefill", Phase::prefill, kernels.attention_prefill);
    refuse_other_phase(reader, "attention_decode", Phase::decode, kernels.attention_decode);
    reader.finish();
  }

  static void refuse_other_phase(MapReader& reader, std::string_view key, Phase phase,
                                 const std::vector<const lower::AttentionKernel*>& chosen) {
    for (const lower::AttentionKernel* kernel : chosen)
      if (const std::optional<Phase> only = kernel->limits.only; only && *only != phase)
        reader.complain(*reader.optional(key), reader.path_to(key) + ": " + std::string(kernel->name) + " is for " +
                                                   (*only == Phase::decode ? "decode" : "prefill") + " only");
  }

  // In order of preference.
  template <class Kernel>
  void read_libraries(MapReader& reader, std::string_view key, std::span<const Kernel* const> known,
                      std::vector<const Kernel*>& chosen) {
    const Node* list = reader.optional(key);
    if (list == nullptr) return;
    if (list->kind != NodeKind::list || list->children.empty())
      return reader.complain(*list, reader.path_to(key) + ": must be a list of kernels, the preferred one first");
    Choices<const Kernel*> choices;
    for (const Kernel* kernel : known) choices.emplace_back(kernel->name, kernel);
    for (const Node& name : list->children) {
      const Kernel* kernel = nullptr;
      reader.read_choice(name, kernel, ChoiceView<const Kernel*>(choices));
      if (kernel != nullptr) chosen.push_back(kernel);
    }
  }

  void read_reached(MapReader reader) {
    for (const sim::FigureField<sim::Reached>& field : sim::kReached)
      sim::visit_figure(stack_.reached, field,
                        [&](auto& target) { figure(reader, field.info.key, field.info, target); });
    reader.finish();
  }

  void read_figures(MapReader reader, std::string_view section) {
    read_group(reader, section);
    reader.finish();
  }

  void read_group(MapReader& reader, std::string_view section) {
    for (const sim::StackField& field : sim::kStackFigures)
      if (field.section() == section)
        sim::visit_figure(stack_, field, [&](auto& target) { figure(reader, field.name(), field.info, target); });
  }

  template <class T>
  void read_list(MapReader& reader, std::string_view key, std::vector<T>& list) {
    if (const Node* node = reader.optional(key)) reader.read(*node, list);
  }

  // {value: 3, kind: assumed, source: "..."}
  template <class T>
  void figure(MapReader& reader, std::string_view key, const sim::FigureInfo& info, T& target) {
    const Node* node = reader.optional(key);
    if (node == nullptr) return;
    const std::string path = reader.path_to(key);
    if (node->kind != NodeKind::map)
      return problems_.add(*node,
                           path + ": must be {value: ..., kind: spec | measured | fitted | assumed, source: ...}");
    MapReader fields(node, path, problems_);
    std::string_view kind;
    std::string source;
    fields.required("value", target, info.bounds);
    fields.required("kind", kind, kStackEvidence);
    fields.required("source", source);
    fields.finish();
    stack_.sources[path] = std::string(kind) + ": " + source;
  }

  template <class T>
  void figure(MapReader& reader, std::string_view key, const sim::FigureInfo& info, std::optional<T>& target) {
    T value{};
    if (reader.node() == nullptr || reader.node()->find(key) == nullptr) return;
    figure(reader, key, info, value);
    target = value;
  }

  const Node& document_;
  ProblemList& problems_;
  sim::Stack stack_;
};

sim::Stack read_document(const std::string& file, const Node& document) {
  require_kind(file, document, kStackSchema);
  ProblemList problems(file);
  sim::Stack stack = StackReader(document, problems).read();
  problems.throw_if_any();
  return stack;
}

}  // namespace

sim::Stack read_stack_file(const std::string& path) { return read_document(path, read_yaml_file(path)); }

sim::Stack read_stack(const std::string& file, const std::string& yaml) {
  return read_document(file, parse_yaml(file, yaml));
}

}  // namespace dculab::config
