#include "kernels/gpu/host/kernel_symbol.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace dculab::kernels::gpu::host {
namespace {

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (auto place = text.find(what); place != std::string::npos; place = text.find(what, place))
    text.replace(place, what.size(), by);
}

// Without its arguments: up to the first parenthesis outside <>.
[[nodiscard]] std::string without_arguments(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
    if (text[i] == '(' && depth == 0) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::string kernel_symbol(const void* kernel) {
  Dl_info info{};
  if (dladdr(kernel, &info) == 0 || info.dli_sname == nullptr || info.dli_saddr != kernel) return {};
  const std::unique_ptr<char, void (*)(void*)> demangled(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr),
                                                         std::free);
  if (demangled == nullptr) return {};
  std::string name = demangled.get();
  for (const std::string_view noise : {"dculab::kernels::gpu::host_build::", "dculab::kernels::gpu::", "void "})
    replace_all(name, noise, "");
  replace_all(name, "> >", ">>");
  return without_arguments(name);
}

}  // namespace dculab::kernels::gpu::host
