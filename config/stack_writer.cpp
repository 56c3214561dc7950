#include <map>
#include <stdexcept>

#include "config/kernel_parameters.hpp"
#include "config/stack_file.hpp"
#include "config/stack_keys.hpp"
#include "config/yaml_figure.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::config {
namespace {

[[nodiscard]] std::string written(const std::string& text) { return yaml_quoted(text); }
[[nodiscard]] std::string written(int value) { return std::to_string(value); }
[[nodiscard]] std::string written(Dtype dtype) { return std::string(name(dtype)); }
[[nodiscard]] std::string written(lower::Vendor vendor) { return std::string(lower::name(vendor)); }
template <class Kernel>
[[nodiscard]] std::string written(const Kernel* kernel) {
  return std::string(kernel->name);
}

class StackWriter {
 public:
  explicit StackWriter(const sim::Stack& stack) : stack_(stack) {}

  std::string write() {
    text_ = "schema: " + std::string(kStackSchema) + "\nname: " + yaml_quoted(stack_.name) +
            "\nprogram: " + yaml_quoted(stack_.program) + "\ndescription: " + yaml_quoted(stack_.description) +
            "\nage: " + std::to_string(stack_.age) + "\n";
    section("devices", [this] {
      list("vendor", stack_.devices.vendors);
      list("isa", stack_.devices.isas);
      list("compute_capability", stack_.devices.compute_capabilities);
    });
    section("kernels", [this] {
      list("matmul", stack_.kernels.matmul);
      list("attention_prefill", stack_.kernels.attention_prefill);
      list("attention_decode", stack_.kernels.attention_decode);
      list("all_reduce", stack_.kernels.all_reduce);
      list("experts", stack_.kernels.experts);
    });
    write_parameters();
    for (const auto& [key, split] : kSplits)
      if (split == stack_.split) text_ += "split: " + std::string(key) + "\n";
    if (stack_.frees_windows) text_ += "frees_windows: true\n";
    section("reached", [this] {
      for (const sim::FigureField<sim::Reached>& field : sim::kReached)
        sim::visit_figure(stack_.reached, field,
                          [&](const auto& value) { figure("  ", "reached.", field.info.key, value); });
    });
    write_figures("", "", "");
    for (const std::string_view each : {"host", "sampler", "graphs", "unfused", "entries"})
      section(each, [&] { write_figures("  ", each, std::string(each) + "."); });
    section("defaults", [this] {
      const auto write_default = [this](const auto& key) {
        text_ += "  " + std::string(key.info.key) + ": " + std::to_string(stack_.defaults.*key.get) + "\n";
      };
      std::apply([&](const auto&... key) { (write_default(key), ...); }, DefaultsKeys::keys);
    });
    section("limits", [this] { write_limits(); });
    return std::move(text_);
  }

 private:
  // Its head, where `write` writes anything.
  template <class Write>
  void section(std::string_view key, Write write) {
    const std::size_t begin = text_.size();
    write();
    if (text_.size() > begin) text_.insert(begin, std::string(key) + ":\n");
  }

  template <class T>
  void list(std::string_view key, const std::vector<T>& values) {
    std::string words;
    for (const T& value : values) words += (words.empty() ? "" : ", ") + written(value);
    if (!values.empty()) text_ += "  " + std::string(key) + ": [" + words + "]\n";
  }

  // Those that are not as the program has them.
  void write_parameters() {
    std::map<std::string, std::string> kernels;
    for (const StackParameter& each : parameters_of(stack_)) {
      const int value = stack_.kernels.parameters[*each.parameter];
      if (value == each.parameter->standard) continue;
      const std::size_t kernel = each.key.find('.') + 1, name = each.key.rfind('.') + 1;
      std::string& values = kernels[each.key.substr(kernel, name - 1 - kernel)];
      values += (values.empty() ? "" : ", ") + each.key.substr(name) + ": " + std::to_string(value);
    }
    section("parameters", [&] {
      for (const auto& [kernel, values] : kernels) text_ += "  " + kernel + ": {" + values + "}\n";
    });
  }

  void write_figures(const std::string& indent, std::string_view of_section, const std::string& path) {
    for (const sim::StackField& field : sim::kStackFigures)
      if (field.section() == of_section)
        sim::visit_figure(stack_, field, [&](const auto& value) { figure(indent, path, field.name(), value); });
  }

  void write_limits() {
    list("block_sizes", stack_.limits.block_sizes);
    list("kv_cache_dtypes", stack_.limits.kv_cache_dtypes);
    list("weight_dtypes", stack_.limits.weight_dtypes);
    if (!stack_.limits.alibi) text_ += "  alibi: false\n";
    if (stack_.limits.max_num_seqs > 0) text_ += "  max_num_seqs: " + std::to_string(stack_.limits.max_num_seqs) + "\n";
  }

  template <class T>
  void figure(const std::string& indent, const std::string& path, std::string_view key, const T& value) {
    const auto source = stack_.sources.find(path + std::string(key));
    if (source == stack_.sources.end()) return;
    const std::size_t colon = source->second.find(": ");
    if (colon == std::string::npos)
      throw std::logic_error("stack " + stack_.name + ": no kind in the source of " + path + std::string(key));
    text_ += indent + std::string(key) + ": {value: " + figure_text(value) +
             ", kind: " + source->second.substr(0, colon) +
             ", source: " + yaml_quoted(source->second.substr(colon + 2)) + "}\n";
  }
  template <class T>
  void figure(const std::string& indent, const std::string& path, std::string_view key, const std::optional<T>& value) {
    if (value) figure(indent, path, key, *value);
  }

  const sim::Stack& stack_;
  std::string text_;
};

}  // namespace

std::string stack_yaml(const sim::Stack& stack) { return StackWriter(stack).write(); }

}  // namespace dculab::config
