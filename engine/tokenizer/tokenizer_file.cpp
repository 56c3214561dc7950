#include "engine/tokenizer/tokenizer_file.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/json.hpp"
#include "engine/tokenizer/json_node.hpp"
#include "engine/tokenizer/tokenizer_steps.hpp"

namespace dculab::engine {
namespace {

using nlohmann::json;

std::pair<std::string, std::string> read_merge(const JsonNode& merges, std::size_t i) {
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
  JsonNode(merge, merges.item_path(i)).fail("must be two tokens, \"a b\" or [\"a\", \"b\"]");
}

void refuse_unsupported_model(const JsonNode& model) {
  const std::string type = model["type"].text_or("BPE");
  if (type != "BPE") model.fail("the type '" + type + "' is not supported (only BPE is)");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model[key].text_or("").empty()) model[key].fail("is not supported");
  }
  const json& dropout = model["dropout"].value();
  if (!dropout.is_null() && dropout != 0) model["dropout"].fail("must be null (tokens must not depend on chance)");
}

BpeModel read_model(const JsonNode& node) {
  refuse_unsupported_model(node);
  BpeModel model;
  const JsonNode vocabulary = node["vocab"];
  if (!vocabulary.value().is_object() || vocabulary.value().empty()) vocabulary.fail("must be an object of token ids");
  for (const auto& [token, id] : vocabulary.value().items()) {
    model.vocabulary.emplace(token, JsonNode(id, "model.vocab[\"" + token + "\"]").token_id());
  }
  const JsonNode merges = node["merges"];
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
  bool past_text = false;
  for (const JsonNode& piece : node["single"].items()) {
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
      step.fail("the post-processor '" + type + "' is not supported (only TemplateProcessing and ByteLevel are)");
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

TokenizerFile read_tokenizer_file(std::string_view json_text, const std::string& file) {
  const json document = parse_json(json_text, file);
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
