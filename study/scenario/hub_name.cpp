#include "study/scenario/hub_name.hpp"

#include <algorithm>
#include <array>

#include "core/letter_case.hpp"
#include "fields/near_words.hpp"

namespace dculab::study {
namespace {

constexpr std::array<std::string_view, 4> kTuned{"-instruct", "-chat", "-it", "-hf"};

struct StoredSuffix {
  std::string_view suffix, weights;
};
constexpr auto kStored = std::to_array<StoredSuffix>({{"-awq", "awq"},
                                                      {"-awq-int4", "awq"},
                                                      {"-fp8", "fp8"},
                                                      {"-fp8-dynamic", "fp8"},
                                                      {"-gptq", "gptq-int4"},
                                                      {"-gptq-int4", "gptq-int4"},
                                                      {"-gptq-int8", "gptq-int8"},
                                                      {"-bnb-4bit", "nf4"}});

[[nodiscard]] bool ends_with_word(std::string_view name, std::string_view suffix) {
  return name.size() > suffix.size() && same_word(name.substr(name.size() - suffix.size()), suffix);
}

// "llama" of "Llama-3.1-8B", "qwen" of "Qwen3-8B".
[[nodiscard]] std::string family_of_name(std::string_view name) {
  const auto is_letter = [](char letter) { return lower_case(letter) >= 'a' && lower_case(letter) <= 'z'; };
  return lower_case(name.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(name, is_letter) - name.begin())));
}

[[nodiscard]] std::vector<std::string_view> family_members(std::string_view name,
                                                           const std::vector<std::string>& known) {
  constexpr std::size_t kShortest = 2;  // letters that tell a family
  const std::string family = family_of_name(name);
  std::vector<std::string_view> members;
  for (const std::string& each : known)
    if (family.size() >= kShortest && family_of_name(each) == family) members.emplace_back(each);
  return members;
}

// "qwen3-4b" of "Qwen3-4B-Instruct-2507", but not of "Qwen3-4Bx".
[[nodiscard]] bool begins_with_words(std::string_view name, std::string_view words) {
  return name.size() > words.size() && name[words.size()] == '-' && same_word(name.substr(0, words.size()), words);
}

}  // namespace

std::string_view without_tuning(std::string_view name) {
  for (bool was_cut = true; was_cut;) {
    was_cut = false;
    for (const std::string_view suffix : kTuned)
      if (ends_with_word(name, suffix)) {
        name.remove_suffix(suffix.size());
        was_cut = true;
      }
  }
  return name;
}

std::optional<StoredName> stored_name(std::string_view name) {
  for (const auto& [suffix, weights] : kStored)
    if (ends_with_word(name, suffix)) return StoredName{name.substr(0, name.size() - suffix.size()), weights};
  return std::nullopt;
}

std::string family_suggestion(std::string_view name, const std::vector<std::string>& known) {
  std::vector<std::string_view> members = family_members(name, known);
  while (members.empty() && name.find('-') != std::string_view::npos) {  // "Meta-Llama-3-9B"
    name.remove_prefix(name.find('-') + 1);
    members = family_members(name, known);
  }
  std::string_view longest;
  for (const std::string_view member : members)
    if (begins_with_words(name, member) && member.size() > longest.size()) longest = member;
  if (!longest.empty()) return did_you_mean(std::array{longest});
  std::vector<std::string_view> untuned, found;
  for (const std::string_view member : members) untuned.push_back(without_tuning(member));
  for (const std::size_t index : nearest_words(without_tuning(name), untuned)) found.push_back(members[index]);
  return did_you_mean(found);
}

}  // namespace dculab::study
