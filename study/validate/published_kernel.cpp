#include "study/validate/published_kernel.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/error.hpp"
#include "lower/kernel_library.hpp"

namespace dculab::study {
namespace {

using lower::KernelParameter;

template <class Kernel>
[[nodiscard]] const Kernel* kernel_named(std::span<const Kernel* const> all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Kernel::name);
  return found == all.end() ? nullptr : *found;
}

void set_parameter(sim::Stack& stack, const lower::AttentionKernel* kernel, const std::string& name,
                   const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string written = word.substr(0, equals), key = written == "tile" ? "tile_size" : written;
  const std::span<const KernelParameter> known =
      kernel == nullptr ? std::span<const KernelParameter>{} : kernel->parameters;
  const auto parameter = std::ranges::find(known, key, &KernelParameter::name);
  if (equals == std::string::npos || parameter == known.end())
    throw InputError("no parameter '" + written + "' of kernel " + name);
  int value = 0;
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data() + equals + 1, end, value);
  if (read.ec != std::errc() || read.ptr != end ||
      std::ranges::find(parameter->allowed, value) == parameter->allowed.end())
    throw InputError("kernel " + name + " has no " + word);
  stack.kernels.parameters.set(*parameter, value);
}

}  // namespace

void run_kernel(sim::Stack& stack, const std::string& kernel) {
  std::istringstream words(kernel);
  std::string name, word;
  words >> name;
  lower::Kernels& kernels = stack.kernels;
  const auto* attention = kernel_named(lower::attention_kernels(), name);
  if (attention != nullptr) {
    if (attention->limits.only != Phase::decode) kernels.attention_prefill = {attention};
    if (attention->limits.only != Phase::prefill) kernels.attention_decode = {attention};
  } else if (const auto* product = kernel_named(lower::matmul_kernels(), name)) {
    kernels.matmul = {product};
  } else if (const auto* collective = kernel_named(lower::collective_kernels(), name)) {
    kernels.all_reduce = {collective};
  } else if (const auto* experts = kernel_named(lower::expert_kernels(), name)) {
    kernels.experts = {experts};
  } else {
    throw InputError("no kernel '" + name + "' in the kernel libraries");
  }
  while (words >> word) set_parameter(stack, attention, name, word);
}

}  // namespace dculab::study
