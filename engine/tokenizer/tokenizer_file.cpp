#include "engine/tokenizer/tokenizer_file.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/json.hpp"

namespace dculab::engine {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxTokenId = (1 << 21) - 1;  // eight times the largest vocabulary known; bounds the memory
constexpr const char* kSentencePiece = "SentencePiece-style BPE is not supported (only byte-level BPE is)";

// A value in the file, and where it stands: every message names it.
class Node {
 public:
  Node(const json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(path_.empty() ? what : path_ + ": " + what);
  }

  // A missing member reads as null.
  [[nodiscard]] Node operator[](const char* key) const {
    static const json kNull;
    if (!value_->is_object()) fail("must be an object");
    const auto member = value_->find(key);
    return {member == value_->end() ? kNull : *member, path_.empty() ? key : path_ + "." + key};
  }
  [[nodiscard]] std::vector<Node> items() const {
    if (!value_->is_array()) fail("must be a list");
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < value_->size(); ++i) nodes.emplace_back((*value_)[i], item_path(i));
    return nodes;
  }
  [[nodiscard]] std::string item_path(std::size_t i) const { return path_ + "[" + std::to_string(i) + "]"; }
  [[nodiscard]] const json& value() const { return *value_; }
  [[nodiscard]] bool is_null() const { return value_->is_null(); }

  [[nodiscard]] const std::string& text() const {
    if (!value_->is_string()) fail("must be a string");
    return value_->get_ref<const std::string&>();
  }
  [[nodiscard]] std::string text_or(const std::string& absent) const { return is_null() ? absent : text(); }
  [[nodiscard]] bool flag_or(bool absent) const {
    if (is_null()) return absent;
    if (!value_->is_boolean()) fail("must be true or false");
    return value_->get<bool>();
  }
  [[nodiscard]] TokenId token_id() const {
    if (!value_->is_number_integer()) fail("must be a token id");
    // An unsigned number beyond int64 wraps to a negative one, which is refused as well.
    const auto id = value_->get<std::int64_t>();
    if (id < 0 || id > kMaxTokenId) fail("the token id is outside 0 ... " + std::to_string(kMaxTokenId));
    return static_cast<TokenId>(id);
  }

 private:
  const json* value_;
  std::string path_;
};

// The steps of a component in order, with "Sequence"s opened. None for null.
std::vector<Node> steps_of(const Node& component, const char* list_key) {
  constexpr int kMostSequences = 32;
  int sequences = 0;
  std::vector<Node> steps;
  std::vector<Node> open = {component};  // last first
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    if (node.is_null()) continue;
    if (node["type"].text() != "Sequence") {
      steps.push_back(node);
      continue;
    }
    if (++sequences > kMostSequences) component.fail("has too many nested sequences");
    std::vector<Node> inner = node[list_key].items();
    open.insert(open.end(), inner.rbegin(), inner.rend());
  }
  return steps;
}

std::pair<std::string, std::string> read_merge(const Node& merges, std::size_t i) {
  const json& merge = merges.value()[i];
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  }
  Node(merge, merges.item_path(i)).fail("must be two tokens, \"a b\" or [\"a\", \"b\"]");
}

void refuse_unsupported_model(const Node& model) {
  const std::string type = model["type"].text_or("BPE");
  if (type != "BPE") model.fail("the type '" + type + "' is not supported (only byte-level BPE is)");
  if (model["byte_fallback"].flag_or(false)) throw InputError(kSentencePiece);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model[key].text_or("").empty()) model[key].fail("is not supported");
  }
  const json& dropout = model["dropout"].value();
  if (!dropout.is_null() && dropout != 0) model["dropout"].fail("must be null (tokens must not depend on chance)");
}

BpeModel read_model(const Node& node) {
  refuse_unsupported_model(node);
  BpeModel model;
  const Node vocabulary = node["vocab"];
  if (!vocabulary.value().is_object() || vocabulary.value().empty()) vocabulary.fail("must be an object of token ids");
  for (const auto& [token, id] : vocabulary.value().items()) {
    model.vocabulary.emplace(token, Node(id, "model.vocab[\"" + token + "\"]").token_id());
  }
  const Node merges = node["merges"];
  if (!merges.value().is_array()) merges.fail("must be a list");
  model.merges.reserve(merges.value().size());
  for (std::size_t i = 0; i < merges.value().size(); ++i) {
    const json& merge = merges.value()[i];
    const bool is_header = merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version");
    if (!is_header) model.merges.push_back(read_merge(merges, i));
  }
  model.unknown_token = node["unk_token"].text_or("");
  model.fuse_unknown = node["fuse_unk"].flag_or(false);
  model.ignore_merges = node["ignore_merges"].flag_or(false);
  return model;
}

std::vector<AddedToken> read_added_tokens(const Node& node) {
  std::vector<AddedToken> tokens;
  if (node.is_null()) return tokens;
  for (const Node& entry : node.items()) {
    AddedToken token;
    token.content = entry["content"].text();
    token.id = entry["id"].token_id();
    token.special = entry["special"].flag_or(false);
    token.normalized = entry["normalized"].flag_or(!token.special);
    token.lstrip = entry["lstrip"].flag_or(false);
    token.rstrip = entry["rstrip"].flag_or(false);
    token.single_word = entry["single_word"].flag_or(false);
    if (!token.content.empty()) tokens.push_back(std::move(token));
  }
  return tokens;
}

Normalization read_normalization(const Node& node) {
  Normalization form = Normalization::none;
  for (const Node& step : steps_of(node, "normalizers")) {
    const std::string& type = step["type"].text();
    if (type == "Prepend" || type == "Replace") throw InputError(kSentencePiece);
    if (type != "NFC") step.fail("the normalizer '" + type + "' is not supported (only NFC is)");
    form = Normalization::nfc;
  }
  return form;
}

SplitBehavior read_behavior(const Node& node) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {{
      {"Isolated", SplitBehavior::isolated},
      {"Removed", SplitBehavior::removed},
      {"Contiguous", SplitBehavior::contiguous},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
  }};
  for (const auto& [name, behavior] : kBehaviors) {
    if (node.text() == name) return behavior;
  }
  node.fail("'" + node.text() + "' is not a split behavior");
}

SplitRule read_split(const Node& node) {
  const Node pattern = node["pattern"];
  const bool is_regex = !pattern["Regex"].is_null();
  const Regex regex = is_regex ? Regex(pattern["Regex"].text(), PatternKind::regex)
                               : Regex(pattern["String"].text(), PatternKind::literal);
  return {regex, read_behavior(node["behavior"]), node["invert"].flag_or(false) ? Delimiter::gaps : Delimiter::matches};
}

SplitRule read_digits(const Node& node) {
  const bool individual = node["individual_digits"].flag_or(false);
  return {Regex(R"(\p{N})", PatternKind::regex), individual ? SplitBehavior::isolated : SplitBehavior::contiguous};
}

PreTokenizerRules read_pre_tokenizer(const Node& node) {
  PreTokenizerRules rules;
  bool is_byte_level = false;
  for (const Node& step : steps_of(node, "pretokenizers")) {
    if (is_byte_level) step.fail("ByteLevel must be the last pre-tokenizer");
    const std::string& type = step["type"].text();
    if (type == "Metaspace") throw InputError(kSentencePiece);
    if (type == "Split") {
      rules.splits.push_back(read_split(step));
    } else if (type == "Digits") {
      rules.splits.push_back(read_digits(step));
    } else if (type == "ByteLevel") {
      rules.add_prefix_space = step["add_prefix_space"].flag_or(true);
      rules.use_regex = step["use_regex"].flag_or(true);
      is_byte_level = true;
    } else {
      step.fail("the pre-tokenizer '" + type + "' is not supported (only ByteLevel, Split and Digits are)");
    }
  }
  if (!is_byte_level) throw InputError(kSentencePiece);
  return rules;
}

void check_decoder(const Node& node) {
  bool is_byte_level = false;
  for (const Node& step : steps_of(node, "decoders")) {
    const std::string& type = step["type"].text();
    if (is_byte_level ? type != "Fuse" : type != "ByteLevel") {
      step.fail("the decoder '" + type + "' is not supported (only ByteLevel is)");
    }
    is_byte_level = true;
  }
  if (!is_byte_level) node.fail("must be ByteLevel");
}

void read_template(const Node& node, TokenizerFile& file) {
  bool past_text = false;
  for (const Node& piece : node["single"].items()) {
    if (const Node sequence = piece["Sequence"]; !sequence.is_null()) {
      if (past_text || sequence["id"].text() != "A") piece.fail("the text must stand in the template once, as A");
      past_text = true;
      continue;
    }
    const std::string& name = piece["SpecialToken"]["id"].text();
    for (const Node& id : node["special_tokens"][name.c_str()]["ids"].items()) {
      (past_text ? file.suffix : file.prefix).push_back(id.token_id());
    }
  }
  if (!past_text) node["single"].fail("the text must stand in the template once, as A");
}

void read_post_processor(const Node& node, TokenizerFile& file) {
  bool has_template = false;
  for (const Node& step : steps_of(node, "processors")) {
    const std::string& type = step["type"].text();
    if (type == "ByteLevel") continue;  // moves offsets only
    if (type != "TemplateProcessing") {
      step.fail("the post-processor '" + type + "' is not supported (only TemplateProcessing and ByteLevel are)");
    }
    if (std::exchange(has_template, true)) step.fail("only one template is supported");
    read_template(step, file);
  }
}

}  // namespace

TokenizerFile read_tokenizer_file(std::string_view json_text, const std::string& file) {
  const json document = parse_json(json_text, file);
  const Node root(document, "");
  try {
    TokenizerFile result;
    result.model = read_model(root["model"]);
    result.added_tokens = read_added_tokens(root["added_tokens"]);
    result.normalization = read_normalization(root["normalizer"]);
    result.pre_tokenizer = read_pre_tokenizer(root["pre_tokenizer"]);
    check_decoder(root["decoder"]);
    read_post_processor(root["post_processor"], result);
    return result;
  } catch (const InputError& error) {
    throw InputError(file, error.what());
  }
}

}  // namespace dculab::engine
