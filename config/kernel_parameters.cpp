#include "config/kernel_parameters.hpp"

#include <algorithm>

namespace dculab::config {
namespace {

[[nodiscard]] std::string listed_keys(const std::vector<StackParameter>& parameters) {
  std::string text;
  for (const StackParameter& each : parameters) text += (text.empty() ? "" : ", ") + each.key;
  return text.empty() ? "its kernels have none" : "known are " + text;
}

[[nodiscard]] std::string listed_values(const lower::KernelParameter& parameter) {
  std::string text;
  for (const int value : parameter.allowed) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text + " " + std::string(parameter.unit);
}

// `key` as parameters_of has it; `path` for messages.
void choose(sim::Stack& stack, const std::string& key, const std::string& path, MapReader& reader, const Node& value) {
  const std::vector<StackParameter> all = parameters_of(stack);
  const auto found = std::ranges::find(all, key, &StackParameter::key);
  if (found == all.end())
    return reader.complain(value, path + ": no parameter of a kernel of " + stack.name + "; " + listed_keys(all));
  const lower::KernelParameter& parameter = *found->parameter;
  int number = parameter.standard;
  reader.read(value, number);
  if (std::ranges::find(parameter.allowed, number) == parameter.allowed.end())
    return reader.complain(
        value, path + ": '" + value.text + "' is none that the kernel can have; it takes " + listed_values(parameter));
  stack.kernels.parameters.set(parameter, number);
}

}  // namespace

std::vector<StackParameter> parameters_of(const sim::Stack& stack) {
  std::vector<StackParameter> all;
  std::vector<const lower::AttentionKernel*> seen;
  for (const auto* list : {&stack.kernels.attention_prefill, &stack.kernels.attention_decode})
    for (const lower::AttentionKernel* kernel : *list) {
      if (std::ranges::find(seen, kernel) != seen.end()) continue;
      seen.push_back(kernel);
      for (const lower::KernelParameter& parameter : kernel->parameters)
        all.push_back({"parameters." + std::string(kernel->name) + "." + std::string(parameter.name), &parameter});
    }
  return all;
}

void read_parameters(MapReader kernels, sim::Stack& stack) {
  if (!kernels.is_present()) return;
  for (const Node& kernel : kernels.node()->children) {
    MapReader values = kernels.required_map(kernel.key);
    if (!values.is_present()) continue;
    for (const Node& value : values.node()->children)
      if (values.optional(value.key) == &value) {
        const std::string key = values.path_to(value.key);
        choose(stack, key, key, values, value);
      }
    values.finish();
  }
  kernels.finish();
}

void set_parameter(sim::Stack& stack, MapReader& reader, const Node& change) {
  choose(stack, change.key, reader.path_to(change.key), reader, change);
}

}  // namespace dculab::config
