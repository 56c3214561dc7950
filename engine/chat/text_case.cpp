#include "engine/chat/text_case.hpp"

#include <utf8proc.h>

#include <algorithm>

#include "engine/chat/template_value.hpp"
#include "fields/utf8.hpp"

namespace dculab::engine::chat {
namespace {

template <class Change>
[[nodiscard]] std::string changed(std::string_view text, const Change& change) {
  std::string result;
  for (; !text.empty(); text.remove_prefix(first_unit(text).size)) {
    const Utf8Unit unit = first_unit(text);
    if (unit.kind == Utf8Kind::character)
      append_character(result, static_cast<char32_t>(change(static_cast<utf8proc_int32_t>(unit.code_point))));
    else
      result += text.substr(0, unit.size);
  }
  return result;
}

[[nodiscard]] bool is_space(const std::string& character) { return is_python_space(first_unit(character).code_point); }

}  // namespace

std::string in_upper_case(std::string_view text) { return changed(text, utf8proc_toupper); }
std::string in_lower_case(std::string_view text) { return changed(text, utf8proc_tolower); }

std::string stripped(std::string_view text, const std::string* characters, bool left, bool right) {
  const std::vector<std::string> all = characters_of(text);
  const std::vector<std::string> unwanted =
      characters == nullptr ? std::vector<std::string>() : characters_of(*characters);
  const auto goes = [&](const std::string& each) {
    return characters == nullptr ? is_space(each) : std::ranges::count(unwanted, each) > 0;
  };
  std::size_t begin = 0, end = all.size(), first = 0, last = text.size();
  for (; left && begin < end && goes(all[begin]); ++begin) first += all[begin].size();
  for (; right && end > begin && goes(all[end - 1]); --end) last -= all[end - 1].size();
  return std::string(text.substr(first, last - first));
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool is_inside = false;
  for (const std::string& character : characters_of(text)) {
    const bool was_inside = std::exchange(is_inside, !is_space(character));
    if (!is_inside) continue;
    if (!was_inside) words.emplace_back();
    words.back() += character;
  }
  return words;
}

}  // namespace dculab::engine::chat
