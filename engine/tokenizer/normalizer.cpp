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

void require_room(std::size_t size, std::size_t more, std::size_t most) {
  if (more > most - std::min(size, most))
    throw InputError("the tokenizer's rules turn a text into more than " + std::to_string(most) +
                     " bytes; is tokenizer.json the model's own?");
}

}  // namespace

std::string replaced(std::string_view text, std::string_view pattern, std::string_view content, std::size_t most) {
  std::string result;
  result.reserve(std::min(text.size(), most));
  for (std::size_t begin = 0;;) {
    const std::size_t found = std::min(text.find(pattern, begin), text.size());
    const std::string_view kept = text.substr(begin, found - begin);
    const std::string_view added = found == text.size() ? std::string_view() : content;
    require_room(result.size(), kept.size() + added.size(), most);
    result.append(kept).append(added);
    if (found == text.size()) return result;
    begin = found + pattern.size();
  }
}

std::string normalized(std::string_view text, const Normalizer& normalizer, GrowthRoom room) {
  const std::size_t most = most_bytes(text, room);
  std::string result(text);
  for (const NormalizerStep& step : normalizer) {
    if (step.kind == NormalizerKind::nfc) result = composed(result);
    if (step.kind == NormalizerKind::replace) result = replaced(result, step.pattern, step.content, most);
    if (step.kind != NormalizerKind::prepend || result.empty()) continue;
    require_room(result.size(), step.content.size(), most);
    result.insert(0, step.content);
  }
  return result;
}

}  // namespace dculab::engine
