#include "engine/tokenizer/tokenizer_file.hpp"

#include <utility>

#include "core/error.hpp"
#include "engine/tokenizer/json_node.hpp"
#include "engine/tokenizer/tokenizer_steps.hpp"
#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"

namespace dculab::engine {
namespace {

std::pair<std::string, std::string> read_merge(const JsonNode& merges, std::size_t i) {
  const Node& merge = merges.value().children[i];
  const std::vector<Node>& pair = merge.children;
  if (pair.size() == 2 && pair[0].is(ScalarType::text) && pair[1].is(ScalarType::text) && merge.kind == NodeKind::list)
    return {pair[0].text, pair[1].text};
  if (merge.is(ScalarType::text)) {
    const std::string& text = merge.text;
    const std::size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  }
  JsonNode(merge, merges.item_path(i)).fail("must be two tokens, \"a b\" or [\"a\", \"b\"]");
}

void refuse_unsupported_model(const JsonNode& model) {
  const std::string type = model["type"].text_or("BPE");
  if (type != "BPE") model.fail("the type " + in_quotes(type) + " is not supported (only BPE is)");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model[key].text_or("").empty()) model[key].fail("is not supported");
  }
  const Node& dropout = model["dropout"].value();
  const bool is_number = dropout.is(ScalarType::integer) || dropout.is(ScalarType::real);
  if (dropout.kind != NodeKind::null && !(is_number && number_of(dropout) == 0))
    model["dropout"].fail("must be null (tokens must not depend on chance)");
}

BpeModel read_model(const JsonNode& node) {
  refuse_unsupported_model(node);
  BpeModel model;
  const JsonNode vocabulary = node["vocab"];
  const Node& ids = vocabulary.value();
  if (ids.kind != NodeKind::map || ids.children.empty()) vocabulary.fail("must be an object of token ids");
  for (const Node& id : ids.children)
    model.vocabulary.emplace(id.key, JsonNode(id, "model.vocab[\"" + shortened(id.key) + "\"]").token_id());
  const JsonNode merges = node["merges"];
  const std::vector<Node>& list = merges.value().children;
  if (merges.value().kind != NodeKind::list) merges.fail("must be a list");
  model.merges.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool is_header = list[i].is(ScalarType::text) && list[i].text.starts_with("#version");
    if (!is_header) model.merges.push_back(read_merge(merges, i));
  }
  model.unknown_token = node["unk_token"].text_or("");
  model.fuse_unknown = node["fuse_unk"].flag_or(false);
  model.ignore_merges = node["ignore_merges"].flag_or(false);
  model.byte_fallback = node["byte_fallback"].flag_or(false);
  return model;
}

std::vector<AddedToken> read_added_tokens(const JsonNode& node) {
  std::vector<AddedToken> tokens;
  if (node.is_null()) return tokens;
  for (const JsonNode& entry : node.items()) {
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

void read_template(const JsonNode& node, TokenizerFile& file) {
  constexpr std::size_t kMostPieces = 1000;  // each looks for its token among all
  bool past_text = false;
  const std::vector<JsonNode> pieces = node["single"].items();
  if (pieces.size() > kMostPieces) node["single"].fail("has more than " + std::to_string(kMostPieces) + " pieces");
  for (const JsonNode& piece : pieces) {
    if (const JsonNode sequence = piece["Sequence"]; !sequence.is_null()) {
      if (past_text || sequence["id"].text() != "A") piece.fail("the text must stand in the template once, as A");
      past_text = true;
      continue;
    }
    const std::string& name = piece["SpecialToken"]["id"].text();
    for (const JsonNode& id : node["special_tokens"][name.c_str()]["ids"].items()) {
      (past_text ? file.suffix : file.prefix).push_back(id.token_id());
    }
  }
  if (!past_text) node["single"].fail("the text must stand in the template once, as A");
}

void read_post_processor(const JsonNode& node, TokenizerFile& file) {
  bool has_template = false;
  for (const JsonNode& step : steps_of(node, "processors")) {
    const std::string& type = step["type"].text();
    if (type == "ByteLevel") continue;  // moves offsets only
    if (type != "TemplateProcessing") {
      step.fail("the post-processor " + in_quotes(type) +
                " is not supported (only TemplateProcessing and ByteLevel are)");
    }
    if (std::exchange(has_template, true)) step.fail("only one template is supported");
    read_template(step, file);
  }
}

// Bytes or characters: the pre-tokenizer decides how words are spelled, and the rest must go with it.
void settle_spelling(TokenizerFile& file, const JsonNode& root) {
  const bool spells_bytes = file.pre_tokenizer.byte_level.has_value();
  file.model.spelling = spells_bytes ? Spelling::bytes : Spelling::characters;
  if (spells_bytes && file.model.byte_fallback)
    root["model"]["byte_fallback"].fail("is not supported where the pre-tokenizer is ByteLevel");
  if (spells_bytes == file.decoder.has_value())
    root["decoder"].fail(std::string("does not go with a pre-tokenizer ") + (spells_bytes ? "that is" : "without") +
                         " ByteLevel");
}

}  // namespace

TokenizerFile read_tokenizer_file(std::string_view json, const std::string& file) {
  const Node document = parse_json(file, 1, json);
  const JsonNode root(document, "");
  try {
    TokenizerFile result;
    result.model = read_model(root["model"]);
    result.added_tokens = read_added_tokens(root["added_tokens"]);
    result.normalizer = read_normalizer(root["normalizer"]);
    result.pre_tokenizer = read_pre_tokenizer(root["pre_tokenizer"]);
    result.decoder = read_decoder(root["decoder"]);
    settle_spelling(result, root);
    read_post_processor(root["post_processor"], result);
    return result;
  } catch (const InputError& error) {
    throw InputError(file, error.what());
  }
}

}  // namespace dculab::engine
