#include "present/values/stack_values.hpp"

#include <algorithm>

#include "config/kernel_parameters.hpp"
#include "config/stack_keys.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::present {
namespace {

template <class T, class Text>
[[nodiscard]] std::string joined(const std::vector<T>& values, Text text) {
  std::string all;
  for (const T& value : values) all += (all.empty() ? "" : ", ") + std::string(text(value));
  return all.empty() ? "all" : all;
}

[[nodiscard]] std::string_view vendor_text(lower::Vendor vendor) {
  const auto known =
      std::ranges::find_if(config::kVendors, [vendor](const auto& each) { return each.second == vendor; });
  return known == config::kVendors.end() ? "other" : known->first;
}

[[nodiscard]] std::string source_of(const lower::CollectiveKernel& kernel) { return std::string(kernel.source); }

template <class Kernel>
[[nodiscard]] std::string source_of(const Kernel& kernel) {
  return what_it_takes(kernel) + "; " + std::string(kernel.source);
}

template <class Kernel>
void add_kernels(std::vector<MachineFigure>& values, const char* op, const std::vector<const Kernel*>& kernels) {
  const std::string key = std::string("kernels.") + op;
  if (kernels.empty()) values.push_back({key, "our own, or the vendor's library", "", ""});
  for (const Kernel* kernel : kernels) values.push_back({key, std::string(kernel->name), "", source_of(*kernel)});
}

void add_parameters_of(std::vector<MachineFigure>& values, const sim::Stack& stack) {
  for (const config::StackParameter& each : config::parameters_of(stack)) {
    std::string allowed;
    for (const int value : each.parameter->allowed) allowed += (allowed.empty() ? "" : ", ") + std::to_string(value);
    values.push_back(
        {each.key, std::to_string(stack.kernels.parameters[*each.parameter]), "",
         std::string(each.parameter->unit) + ", one of " + allowed + "; " + std::string(each.parameter->source)});
  }
}

void add_figures(std::vector<MachineFigure>& values, const sim::Stack& stack) {
  sim::Machine machine;
  machine.stack = stack;
  for (const std::string& key : sim::stack_figures()) {
    const std::string own = key.substr(sim::kOfStack.size());
    const auto source = stack.sources.find(own);
    const std::optional<double> value = sim::figure_value(machine, key);
    if (!value) {
      values.push_back({own, "the machine's", "", ""});
    } else if (source == stack.sources.end()) {
      const bool is_reached = own.starts_with("reached.");
      values.push_back({own, figure_text(machine, key, *value), is_reached ? "assumed" : "",
                        is_reached ? "prior, where the machine's file says nothing of it" : "default"});
    } else {
      const std::size_t colon = source->second.find(": ");
      values.push_back(
          {own, figure_text(machine, key, *value), source->second.substr(0, colon), source->second.substr(colon + 2)});
    }
  }
}

}  // namespace

std::vector<MachineFigure> stack_values(const sim::Stack& stack) {
  const auto same = [](const std::string& text) { return text; };
  const auto number = [](int size) { return std::to_string(size); };
  std::vector<MachineFigure> values{
      {"program", stack.program, "", ""},
      {"devices.vendor", joined(stack.devices.vendors, vendor_text), "", ""},
      {"devices.isa", joined(stack.devices.isas, same), "", ""},
      {"devices.compute_capability", joined(stack.devices.compute_capabilities, same), "", ""}};
  add_kernels(values, "matmul", stack.kernels.matmul);
  add_kernels(values, "attention_prefill", stack.kernels.attention_prefill);
  add_kernels(values, "attention_decode", stack.kernels.attention_decode);
  add_kernels(values, "all_reduce", stack.kernels.all_reduce);
  add_kernels(values, "experts", stack.kernels.experts);
  add_parameters_of(values, stack);
  values.push_back({"split", stack.split == sim::Split::tensor ? "tensor" : "layers", "", ""});
  values.push_back({"frees_windows", stack.frees_windows ? "true" : "false", "", ""});
  add_figures(values, stack);
  const auto add_default = [&](const auto& key) {
    values.push_back({"defaults." + std::string(key.info.key), std::to_string(stack.defaults.*key.get), "", ""});
  };
  std::apply([&](const auto&... key) { (add_default(key), ...); }, config::DefaultsKeys::keys);
  values.push_back({"limits.block_sizes", joined(stack.limits.block_sizes, number), "", "beside what kernels serve"});
  const auto dtype = [](Dtype each) { return name(each); };
  values.push_back(
      {"limits.kv_cache_dtypes", joined(stack.limits.kv_cache_dtypes, dtype), "", "beside what kernels serve"});
  values.push_back(
      {"limits.weight_dtypes", joined(stack.limits.weight_dtypes, dtype), "", "beside what kernels serve"});
  values.push_back({"limits.alibi", stack.limits.alibi ? "true" : "false", "", "beside what kernels serve"});
  const int most = stack.limits.max_num_seqs;
  values.push_back({"limits.max_num_seqs", most == 0 ? "any" : std::to_string(most), "", ""});
  return values;
}

}  // namespace dculab::present
