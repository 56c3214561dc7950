#include "config/node.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "fields/utf8.hpp"

namespace dculab::config {

void require_utf8(const std::string& file, std::string_view text) {
  const std::size_t valid = valid_prefix(text);
  if (valid == text.size()) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n');
  throw InputError(
      file, static_cast<int>(line),
      "is not UTF-8 (byte " + std::to_string(static_cast<unsigned char>(text[valid])) + "); save it as UTF-8");
}

}  // namespace dculab::config
