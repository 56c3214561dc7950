#include "engine/tokenizer/tokenizer.hpp"

#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "engine/tokenizer/byte_alphabet.hpp"
#include "engine/tokenizer/stream_decoder.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"
#include "model/folder/model_files.hpp"

namespace dculab::engine {

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(path.string(), "is a folder, not a tokenizer.json");
  return parse(read_model_text(path.string()), path.string());
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& name) {
  TokenizerFile file = read_tokenizer_file(json, name);
  try {
    return Tokenizer(std::move(file));
  } catch (const InputError& error) {
    throw InputError(name, error.what());
  }
}

Tokenizer::Tokenizer(TokenizerFile file)
    : bpe_(std::move(file.model)),
      normalizer_(std::move(file.normalizer)),
      pre_tokenizer_(std::move(file.pre_tokenizer)),
      decoder_(std::move(file.decoder)),
      prefix_(std::move(file.prefix)),
      suffix_(std::move(file.suffix)) {
  for (const auto& [token, id] : bpe_.vocabulary()) enter(id, token);
  for (const AddedToken& added : file.added_tokens) enter(added);
  for (const auto* list : {&prefix_, &suffix_}) {
    for (const TokenId id : *list) {
      if (id >= vocab_size()) throw InputError("post_processor: there is no token " + std::to_string(id));
    }
  }
}

void Tokenizer::enter(TokenId id, const std::string& token) {
  const auto index = static_cast<std::size_t>(id);
  if (index < tokens_.size() && tokens_[index].exists)
    throw InputError("model.vocab: two tokens have the id " + std::to_string(id));
  set_token(id, token, false);
}

void Tokenizer::enter(const AddedToken& added) {
  const std::optional<TokenId> known = token_id(added.content);
  if (known && *known != added.id) {
    throw InputError("added_tokens: " + in_quotes(added.content) + " has the id " + std::to_string(added.id) +
                     ", but also " + std::to_string(*known));
  }
  const std::string pattern =
      added.normalized ? normalized(added.content, normalizer_, GrowthRoom::token) : added.content;
  (added.normalized ? in_normalized_text_ : in_raw_text_).add(pattern, added);
  added_ids_.emplace(added.content, added.id);
  // The library looks for the decoded form among the special tokens, so one that normalizing changes is never skipped.
  set_token(added.id, pattern, added.special && pattern == added.content);
}

// `written`: as the vocabulary has it.
void Tokenizer::set_token(TokenId id, const std::string& written, bool special) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= tokens_.size()) tokens_.resize(index + 1);
  Token& token = tokens_[index] = {.bytes = written, .special = special, .exists = true, .is_byte = false};
  if (!decoder_) {
    token.bytes = from_byte_alphabet(written);
    return;
  }
  for (const auto& [pattern, content] : decoder_->replaces)
    token.bytes = replaced(token.bytes, pattern, content, most_bytes(written, GrowthRoom::token));
  const auto byte = decoder_->byte_fallback ? fallback_byte(token.bytes) : std::nullopt;
  token.is_byte = byte.has_value();
  if (byte) token.bytes = std::string(1, static_cast<char>(*byte));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  const bool is_valid = valid_prefix(text) == text.size();
  const std::string repaired_text = is_valid ? std::string() : repaired(text);
  if (!is_valid) text = repaired_text;
  std::vector<TokenId> ids;
  if (special == SpecialTokens::add) ids = prefix_;
  WordEncoder words(bpe_, ids);
  for (const TextPiece& piece : in_raw_text_.split(text)) {
    if (piece.token) {
      ids.push_back(*piece.token);
    } else {
      const bool is_first = piece.text.data() == text.data();
      append_text(piece.text, is_first ? TextStart::here : TextStart::earlier, words, ids);
    }
  }
  if (special == SpecialTokens::add) ids.insert(ids.end(), suffix_.begin(), suffix_.end());
  return ids;
}

void Tokenizer::append_text(std::string_view text, TextStart start, WordEncoder& words,
                            std::vector<TokenId>& ids) const {
  const std::string normal_form = normalizer_.empty() ? "" : normalized(text, normalizer_);
  if (!normalizer_.empty()) text = normal_form;
  for (const TextPiece& piece : in_normalized_text_.split(text)) {
    if (piece.token) {
      ids.push_back(*piece.token);
    } else {
      const bool is_first = start == TextStart::here && piece.text.data() == text.data();
      pre_tokenizer_.for_each_word(piece.text, is_first ? TextStart::here : TextStart::earlier,
                                   [&](std::string_view word) { words.append(word); });
    }
  }
}

std::string Tokenizer::decode(std::span<const TokenId> ids, SpecialText special) const {
  StreamDecoder decoder(*this, special);
  std::string text;
  for (const TokenId id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

bool Tokenizer::is_shown(TokenId id, SpecialText special) const {
  if (id < 0 || id >= vocab_size()) return false;
  const Token& token = tokens_[static_cast<std::size_t>(id)];
  return token.exists && !(token.special && special == SpecialText::skip);
}

std::string_view Tokenizer::token_bytes(TokenId id, SpecialText special) const {
  return is_shown(id, special) ? std::string_view(tokens_[static_cast<std::size_t>(id)].bytes) : std::string_view();
}

std::optional<TokenId> Tokenizer::token_id(std::string_view token) const {
  const auto added = added_ids_.find(token);
  if (added != added_ids_.end()) return added->second;
  const auto known = bpe_.vocabulary().find(token);
  if (known != bpe_.vocabulary().end()) return known->second;
  return std::nullopt;
}

}  // namespace dculab::engine
