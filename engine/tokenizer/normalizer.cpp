#include "engine/tokenizer/normalizer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

struct Free {
  void operator()(utf8proc_uint8_t* memory) const { std::free(memory); }
};

std::string composed(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &result, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(result);
  if (size < 0) throw InputError(std::string("the text cannot be normalized (") + utf8proc_errmsg(size) + ")");
  return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(size)};
}

}  // namespace

std::string replaced(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t begin = 0;;) {
    const std::size_t found = text.find(pattern, begin);
    result += text.substr(begin, found - begin);
    if (found == std::string_view::npos) return result;
    result += content;
    begin = found + pattern.size();
  }
}

std::string normalized(std::string_view text, const Normalizer& normalizer) {
  std::string result(text);
  for (const NormalizerStep& step : normalizer) {
    if (step.kind == NormalizerKind::nfc) result = composed(result);
    if (step.kind == NormalizerKind::replace) result = replaced(result, step.pattern, step.content);
    if (step.kind == NormalizerKind::prepend && !result.empty()) result.insert(0, step.content);
  }
  return result;
}

}  // namespace dculab::engine
