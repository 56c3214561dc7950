#include <map>
#include <stdexcept>

#include "config/kernel_parameters.hpp"
#include "config/stack_file.hpp"
#include "config/stack_keys.hpp"
#include "config/yaml_writer.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::config {
namespace {

[[nodiscard]] Node item(const std::string& text) { return text_node(text); }
[[nodiscard]] Node item(int value) { return word_node(std::to_string(value)); }
[[nodiscard]] Node item(Dtype dtype) { return word_node(name(dtype)); }
[[nodiscard]] Node item(lower::Vendor vendor) { return word_node(lower::name(vendor)); }
template <class Kernel>
[[nodiscard]] Node item(const Kernel* kernel) {
  return word_node(kernel->name);
}

template <class T>
void add_list(Node& map, std::string_view key, const std::vector<T>& values) {
  Node list = list_node();
  for (const T& value : values) list.children.push_back(item(value));
  add_if_any(map, key, std::move(list));
}

class StackWriter {
 public:
  explicit StackWriter(const sim::Stack& stack) : stack_(stack) {}

  [[nodiscard]] Node write() const {
    Node document = map_node();
    add(document, "schema", word_node(kStackSchema));
    add(document, "name", text_node(stack_.name));
    add(document, "program", text_node(stack_.program));
    add(document, "description", text_node(stack_.description));
    add(document, "age", item(stack_.age));
    add_if_any(document, "devices", devices());
    add_if_any(document, "kernels", kernels());
    add_if_any(document, "parameters", parameters());
    for (const auto& [key, split] : kSplits)
      if (split == stack_.split) add(document, "split", word_node(key));
    if (stack_.frees_windows) add(document, "frees_windows", word_node("true"));
    Node reached = map_node();
    for (const sim::FigureField<sim::Reached>& field : sim::kReached)
      sim::visit_figure(stack_.reached, field,
                        [&](const auto& value) { add_figure(reached, "reached.", field.info.key, value); });
    add_if_any(document, "reached", std::move(reached));
    add_figures(document, "", "");
    for (const std::string_view section : {"host", "sampler", "graphs", "unfused", "entries"}) {
      Node figures = map_node();
      add_figures(figures, section, std::string(section) + ".");
      add_if_any(document, section, std::move(figures));
    }
    add_if_any(document, "defaults", defaults());
    add_if_any(document, "limits", limits());
    Node caveats = map_node();
    for (const auto& [weights, text] : stack_.caveats) add(caveats, weights, text_node(text));
    add_if_any(document, "caveats", std::move(caveats));
    return document;
  }

 private:
  [[nodiscard]] Node devices() const {
    Node map = map_node();
    add_list(map, "vendor", stack_.devices.vendors);
    add_list(map, "isa", stack_.devices.isas);
    add_list(map, "compute_capability", stack_.devices.compute_capabilities);
    return map;
  }

  [[nodiscard]] Node kernels() const {
    Node map = map_node();
    add_list(map, "matmul", stack_.kernels.matmul);
    add_list(map, "attention_prefill", stack_.kernels.attention_prefill);
    add_list(map, "attention_decode", stack_.kernels.attention_decode);
    add_list(map, "all_reduce", stack_.kernels.all_reduce);
    add_list(map, "experts", stack_.kernels.experts);
    return map;
  }

  // Those that are not as the program has them.
  [[nodiscard]] Node parameters() const {
    std::map<std::string, Node> kernels;
    for (const StackParameter& each : parameters_of(stack_)) {
      const int value = stack_.kernels.parameters[*each.parameter];
      if (value == each.parameter->standard) continue;
      const std::size_t kernel = each.key.find('.') + 1, name = each.key.rfind('.') + 1;
      Node& values = kernels.try_emplace(each.key.substr(kernel, name - 1 - kernel), map_node()).first->second;
      add(values, each.key.substr(name), item(value));
    }
    Node map = map_node();
    for (auto& [kernel, values] : kernels) add(map, kernel, std::move(values));
    return map;
  }

  [[nodiscard]] Node defaults() const {
    Node map = map_node();
    const auto add_default = [&](const auto& key) { add(map, key.info.key, item(stack_.defaults.*key.get)); };
    std::apply([&](const auto&... key) { (add_default(key), ...); }, DefaultsKeys::keys);
    return map;
  }

  [[nodiscard]] Node limits() const {
    Node map = map_node();
    add_list(map, "block_sizes", stack_.limits.block_sizes);
    add_list(map, "kv_cache_dtypes", stack_.limits.kv_cache_dtypes);
    add_list(map, "weight_dtypes", stack_.limits.weight_dtypes);
    if (!stack_.limits.alibi) add(map, "alibi", word_node("false"));
    if (stack_.limits.max_num_seqs > 0) add(map, "max_num_seqs", item(stack_.limits.max_num_seqs));
    return map;
  }

  void add_figures(Node& map, std::string_view section, const std::string& path) const {
    for (const sim::StackField& field : sim::kStackFigures)
      if (field.section() == section)
        sim::visit_figure(stack_, field, [&](const auto& value) { add_figure(map, path, field.name(), value); });
  }

  template <class T>
  void add_figure(Node& map, const std::string& path, std::string_view key, const T& value) const {
    const auto source = stack_.sources.find(path + std::string(key));
    if (source == stack_.sources.end()) return;
    const std::size_t colon = source->second.find(": ");
    if (colon == std::string::npos)
      throw std::logic_error("stack " + stack_.name + ": no kind in the source of " + path + std::string(key));
    Node figure = map_node();
    add(figure, "value", word_node(figure_text(value)));
    add(figure, "kind", word_node(std::string_view(source->second).substr(0, colon)));
    add(figure, "source", text_node(std::string_view(source->second).substr(colon + 2)));
    add(map, key, std::move(figure));
  }
  template <class T>
  void add_figure(Node& map, const std::string& path, std::string_view key, const std::optional<T>& value) const {
    if (value) add_figure(map, path, key, *value);
  }

  const sim::Stack& stack_;
};

}  // namespace

std::string stack_yaml(const sim::Stack& stack) { return yaml_of(StackWriter(stack).write()); }

}  // namespace dculab::config
