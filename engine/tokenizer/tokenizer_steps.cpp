#include "engine/tokenizer/tokenizer_steps.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"

namespace dculab::engine {
namespace {

template <class Value, std::size_t n>
Value named(const JsonNode& node, const std::string& word, const std::array<std::pair<std::string_view, Value>, n>& all,
            const std::string& what) {
  for (const auto& [name, value] : all)
    if (word == name) return value;
  node.fail(in_quotes(word) + " is not a " + what);
}

SplitBehavior read_behavior(const JsonNode& node) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {{
      {"Isolated", SplitBehavior::isolated},
      {"Removed", SplitBehavior::removed},
      {"Contiguous", SplitBehavior::contiguous},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
  }};
  return named(node, node.text(), kBehaviors, "split behavior");
}

// A pattern that must be a text; what it stands in knows no regex.
const std::string& literal_pattern(const JsonNode& pattern) {
  if (pattern.value().kind == NodeKind::map && pattern["String"].is_null())
    pattern.fail("only a String is supported here");
  const std::string& text = pattern["String"].text();
  if (text.empty()) pattern.fail("must not be empty");
  return text;
}

SplitRule read_split(const JsonNode& node) {
  const JsonNode pattern = node["pattern"];
  const bool is_regex = !pattern["Regex"].is_null();
  const Regex regex = is_regex ? Regex(pattern["Regex"].text(), PatternKind::regex)
                               : Regex(pattern["String"].text(), PatternKind::literal);
  return {regex, read_behavior(node["behavior"]), node["invert"].flag_or(false) ? Delimiter::gaps : Delimiter::matches};
}

SplitRule read_digits(const JsonNode& node) {
  const bool individual = node["individual_digits"].flag_or(false);
  return {Regex(R"(\p{N})", PatternKind::regex), individual ? SplitBehavior::isolated : SplitBehavior::contiguous};
}

// Rust's is_ascii_punctuation, which counts symbols too, and Unicode's punctuation.
SplitRule read_punctuation(const JsonNode& node) {
  const JsonNode behavior = node["behavior"];
  return {Regex(R"([\p{P}$+<=>`|~\^])", PatternKind::regex),
          behavior.is_null() ? SplitBehavior::isolated : read_behavior(behavior)};
}

Metaspace read_metaspace(const JsonNode& node) {
  static constexpr std::array<std::pair<std::string_view, Metaspace::Prepend>, 3> kSchemes = {{
      {"always", Metaspace::Prepend::always},
      {"first", Metaspace::Prepend::first},
      {"never", Metaspace::Prepend::never},
  }};
  Metaspace rule;
  rule.replacement = node["replacement"].text();
  if (rule.replacement.empty() || first_unit(rule.replacement).size != rule.replacement.size())
    node["replacement"].fail("must be one character");
  // Files of older versions have a flag instead.
  const std::string scheme =
      node["prepend_scheme"].text_or(node["add_prefix_space"].flag_or(true) ? "always" : "never");
  rule.prepend = named(node["prepend_scheme"], scheme, kSchemes, "way to prepend");
  rule.split = node["split"].flag_or(true);
  return rule;
}

void add_split(PreTokenizerRules& rules, const JsonNode& step, SplitRule rule) {
  if (rules.metaspace) step.fail("Metaspace must be the last pre-tokenizer");
  (rules.byte_level ? rules.splits_of_bytes : rules.splits).push_back(std::move(rule));
}

void add_step(PreTokenizerRules& rules, const JsonNode& step) {
  const std::string& type = step["type"].text();
  if (type == "Split") return add_split(rules, step, read_split(step));
  if (type == "Digits") return add_split(rules, step, read_digits(step));
  if (type == "Punctuation") return add_split(rules, step, read_punctuation(step));
  if (type != "Metaspace" && type != "ByteLevel")
    step.fail("the pre-tokenizer " + in_quotes(type) +
              " is not supported (only ByteLevel, Metaspace, Split, Digits and Punctuation are)");
  if (rules.metaspace || rules.byte_level) step.fail("only one ByteLevel or Metaspace is supported");
  if (type == "Metaspace")
    rules.metaspace = read_metaspace(step);
  else
    rules.byte_level = {.add_prefix_space = step["add_prefix_space"].flag_or(true),
                        .use_regex = step["use_regex"].flag_or(true)};
}

char read_stripped(const JsonNode& step) {
  const std::string& content = step["content"].text();
  if (content.size() != 1) step["content"].fail("must be one ASCII character");
  if (step["stop"].count_or(0) != 0) step["stop"].fail("is not supported (only 0 is)");
  return content.front();
}

// Where a decoder's steps stand in their order; later ones must not come before earlier ones.
enum class DecoderPlace { replace, byte_fallback, metaspace, fuse, strip };

DecoderPlace read_piece_step(const JsonNode& step, PieceDecoder& decoder, bool is_fused) {
  const std::string& type = step["type"].text();
  if (type == "Replace") {
    decoder.replaces.push_back({literal_pattern(step["pattern"]), step["content"].text()});
    return DecoderPlace::replace;
  }
  if (type == "ByteFallback") {
    decoder.byte_fallback = true;
    return DecoderPlace::byte_fallback;
  }
  if (type == "Metaspace") {
    const Metaspace rule = read_metaspace(step);
    decoder.space_mark = rule.replacement;
    decoder.drops_first_marks = rule.prepend != Metaspace::Prepend::never;
    return DecoderPlace::metaspace;
  }
  if (type == "Fuse") return DecoderPlace::fuse;
  if (type != "Strip")
    step.fail("the decoder " + in_quotes(type) +
              " is not supported (only ByteLevel, Metaspace, Replace, ByteFallback, Fuse and Strip are)");
  if (!is_fused) step.fail("Strip is supported behind Fuse only");
  decoder.strip = read_stripped(step);
  decoder.strip_at_most = step["start"].count_or(0);
  return DecoderPlace::strip;
}

}  // namespace

Normalizer read_normalizer(const JsonNode& node) {
  Normalizer normalizer;
  for (const JsonNode& step : steps_of(node, "normalizers")) {
    const std::string& type = step["type"].text();
    if (type == "NFC") {
      normalizer.push_back({.kind = NormalizerKind::nfc});
    } else if (type == "Prepend") {
      normalizer.push_back({.kind = NormalizerKind::prepend, .content = step["prepend"].text()});
    } else if (type == "Replace") {
      normalizer.push_back({.kind = NormalizerKind::replace,
                            .pattern = literal_pattern(step["pattern"]),
                            .content = step["content"].text()});
    } else {
      step.fail("the normalizer " + in_quotes(type) + " is not supported (only NFC, Prepend and Replace are)");
    }
  }
  return normalizer;
}

PreTokenizerRules read_pre_tokenizer(const JsonNode& node) {
  PreTokenizerRules rules;
  for (const JsonNode& step : steps_of(node, "pretokenizers")) add_step(rules, step);
  return rules;
}

DecoderRules read_decoder(const JsonNode& node) {
  const std::vector<JsonNode> steps = steps_of(node, "decoders");
  if (steps.empty()) node.fail("must be ByteLevel, or the steps of a SentencePiece tokenizer");
  if (steps.front()["type"].text() == "ByteLevel") {
    for (const JsonNode& step : steps)
      if (&step != &steps.front() && step["type"].text() != "Fuse")
        step.fail("the decoder " + in_quotes(step["type"].text()) + " is not supported behind ByteLevel");
    return std::nullopt;
  }
  PieceDecoder decoder;
  auto last = DecoderPlace::replace;
  for (const JsonNode& step : steps) {
    const DecoderPlace place = read_piece_step(step, decoder, last == DecoderPlace::fuse);
    const bool repeats = place == last && place != DecoderPlace::replace;
    if (place < last || repeats) step.fail("must not stand behind the steps before it");
    if (place == DecoderPlace::metaspace && &step != &steps.front()) step.fail("Metaspace must be the first decoder");
    last = place;
  }
  return decoder;
}

}  // namespace dculab::engine
