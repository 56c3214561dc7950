#include "model/plain_modules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <string>
#include <string_view>

#include "fields/printable_text.hpp"

namespace dculab {
namespace {

enum class Named : std::uint8_t {
  unquantized,
  lm_head,
  attention,
  mlp,
  dense_mlp,
  shared_experts,
  experts,
  a_matrix,
  everything
};

constexpr std::size_t kLongestPattern = 500;  // the parser of expressions recurses

// Throws InputError for an expression that cannot be read.
void require_pattern(const JsonFields& fields, const char* key, const std::string& text) {
  if (!text.starts_with("re:")) return;
  if (text.size() > kLongestPattern)
    fields.refuse(key, "has a regular expression of more than " + std::to_string(kLongestPattern) + " characters");
  try {
    const std::regex pattern(text.substr(3));
  } catch (const std::regex_error&) {
    fields.refuse(key, "has " + in_quotes(text) + ", which is not a regular expression");
  }
}

// "model.layers.0.self_attn" of "re:^model\.layers\.0\.self_attn.*".
[[nodiscard]] std::string without_wildcards(std::string name) {
  if (name.starts_with("re:")) name.erase(0, 3);
  std::erase_if(name, [](char each) { return each == '\\' || each == '^' || each == '$'; });
  const auto is_wildcard = [](char each) { return each == '.' || each == '*'; };
  while (!name.empty() && is_wildcard(name.back())) name.pop_back();
  name.erase(name.begin(), std::ranges::find_if_not(name, is_wildcard));
  return name;
}

template <std::size_t N>
[[nodiscard]] bool has_any(std::string_view name, const std::array<std::string_view, N>& parts) {
  return std::ranges::any_of(parts, [name](std::string_view part) { return name.find(part) != name.npos; });
}

[[nodiscard]] Named part_of(std::string_view name) {
  // The last two are of multi-token prediction.
  constexpr std::array<std::string_view, 6> kOutside{"visual", "vision", "mm_proj", "multi_modal", "mtp", "eh_proj"};
  // The last three are small parts of gated delta nets.
  constexpr std::array<std::string_view, 8> kSmall{"norm",  "indexer",   "bias",      "router",
                                                   "embed", "in_proj_a", "in_proj_b", "conv1d"};
  constexpr std::array<std::string_view, 2> kAttention{"attn", "attention"};
  constexpr std::array<std::string_view, 4> kModules{"_proj", "attn", "attention", "mlp"};
  const auto ends = [name](std::string_view end) { return name.ends_with(end); };
  if (name.empty() || name == "model" || name == "model.layers") return Named::everything;
  if (has_any(name, kOutside)) return Named::unquantized;
  if (ends("lm_head") || name == "head") return Named::lm_head;
  if (has_any(name, kSmall) || ends("gate")) return Named::unquantized;
  if (std::ranges::any_of(kAttention, ends)) return Named::attention;
  if (ends("shared_expert") || ends("shared_experts")) return Named::shared_experts;
  if (ends("experts")) return Named::experts;
  if (ends("mlp")) return Named::mlp;
  if (ends("mlp.(gate|up|gate_up|down)_proj") || ends("mlp.(gate|up|down)_proj")) return Named::dense_mlp;
  return has_any(name, kModules) ? Named::a_matrix : Named::unquantized;
}

// "layers.7."
[[nodiscard]] bool is_of_one_layer(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t at = name.find(kLayers);
  return at != name.npos && at + kLayers.size() < name.size() &&
         std::isdigit(static_cast<unsigned char>(name[at + kLayers.size()])) != 0;
}

void add(Named named, PlainModules& plain) {
  const bool all = named == Named::everything, mlp = all || named == Named::mlp;
  plain.lm_head |= all || named == Named::lm_head;
  plain.parts.attention |= all || named == Named::attention;
  plain.parts.mlp |= mlp || named == Named::dense_mlp;
  plain.parts.shared_experts |= mlp || named == Named::shared_experts;
  plain.parts.experts |= mlp || named == Named::experts;
}

// The part that `text`, an entry of the list `key`, names.
[[nodiscard]] Named read_named(const JsonFields& fields, const char* key, const std::string& text) {
  require_pattern(fields, key, text);
  const std::string name = without_wildcards(text);
  const Named named = part_of(name);
  const bool is_of_layers = named != Named::unquantized && named != Named::lm_head;
  if (named == Named::a_matrix || (is_of_layers && is_of_one_layer(name)))
    fields.refuse(
        key, "has " + in_quotes(text) + ": matrices of one part of the layers in several formats are not supported");
  return named;
}

}  // namespace

PlainModules read_plain_modules(const JsonFields& fields, const char* key) {
  PlainModules plain;
  for (const std::string& text : fields.texts(key)) add(read_named(fields, key, text), plain);
  return plain;
}

PlainModules read_untargeted_modules(const JsonFields& fields, const char* key) {
  if (!fields.has(key)) fields.refuse(key, "is missing");
  PlainModules targeted;
  for (const std::string& text : fields.texts(key))
    add(text == "Linear" ? Named::everything : read_named(fields, key, text), targeted);
  const PlainParts& parts = targeted.parts;
  if (parts == PlainParts{}) fields.refuse(key, "names no matrices of the layers that are known");
  return {.parts = {!parts.attention, !parts.mlp, !parts.shared_experts, !parts.experts}, .lm_head = !targeted.lm_head};
}

PlainModules all_of(const PlainModules& a, const PlainModules& b) {
  return {.parts = {a.parts.attention || b.parts.attention, a.parts.mlp || b.parts.mlp,
                    a.parts.shared_experts || b.parts.shared_experts, a.parts.experts || b.parts.experts},
          .lm_head = a.lm_head || b.lm_head};
}

}  // namespace dculab
