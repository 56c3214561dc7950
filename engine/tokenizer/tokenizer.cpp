#include "engine/tokenizer/tokenizer.hpp"

#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/json.hpp"
#include "engine/tokenizer/byte_alphabet.hpp"
#include "engine/tokenizer/utf8.hpp"

namespace dculab::engine {

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(path.string(), "is a folder, not a tokenizer.json");
  return parse(read_text(path.string()), path.string());
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
      normalization_(file.normalization),
      pre_tokenizer_(std::move(file.pre_tokenizer)),
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
  if (index >= tokens_.size()) tokens_.resize(index + 1);
  if (tokens_[index].exists) throw InputError("model.vocab: two tokens have the id " + std::to_string(id));
  tokens_[index] = {from_byte_alphabet(token), false, true};
}

void Tokenizer::enter(const AddedToken& added) {
  const std::optional<TokenId> known = token_id(added.content);
  if (known && *known != added.id) {
    throw InputError("added_tokens: '" + added.content + "' has the id " + std::to_string(added.id) + ", but also " +
                     std::to_string(*known));
  }
  const bool finds_normalized = added.normalized && normalization_ != Normalization::none;
  const std::string pattern = finds_normalized ? normalized(added.content, normalization_) : added.content;
  (added.normalized ? in_normalized_text_ : in_raw_text_).add(pattern, added);
  added_ids_.emplace(added.content, added.id);
  const auto index = static_cast<std::size_t>(added.id);
  if (index >= tokens_.size()) tokens_.resize(index + 1);
  tokens_[index] = {from_byte_alphabet(pattern), added.special, true};
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  const bool is_valid = valid_prefix(text) == text.size();
  const std::string repaired_text = is_valid ? std::string() : repaired(text);
  std::vector<TokenId> ids;
  if (special == SpecialTokens::add) ids = prefix_;
  WordEncoder words(bpe_, ids);
  for (const TextPiece& piece : in_raw_text_.split(is_valid ? text : repaired_text)) {
    if (piece.token) {
      ids.push_back(*piece.token);
    } else {
      append_text(piece.text, words, ids);
    }
  }
  if (special == SpecialTokens::add) ids.insert(ids.end(), suffix_.begin(), suffix_.end());
  return ids;
}

void Tokenizer::append_text(std::string_view text, WordEncoder& words, std::vector<TokenId>& ids) const {
  const std::string normal_form = normalization_ == Normalization::none ? "" : normalized(text, normalization_);
  if (normalization_ != Normalization::none) text = normal_form;
  for (const TextPiece& piece : in_normalized_text_.split(text)) {
    if (piece.token) {
      ids.push_back(*piece.token);
    } else {
      pre_tokenizer_.for_each_word(piece.text, [&](std::string_view word) { words.append(word); });
    }
  }
}

std::string Tokenizer::decode(std::span<const TokenId> ids, SpecialText special) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += token_bytes(id, special);
  return repaired(bytes);
}

std::string_view Tokenizer::token_bytes(TokenId id, SpecialText special) const {
  if (id < 0 || id >= vocab_size()) return {};
  const Token& token = tokens_[static_cast<std::size_t>(id)];
  if (token.special && special == SpecialText::skip) return {};
  return token.bytes;
}

std::optional<TokenId> Tokenizer::token_id(std::string_view token) const {
  const auto added = added_ids_.find(token);
  if (added != added_ids_.end()) return added->second;
  const auto known = bpe_.vocabulary().find(token);
  if (known != bpe_.vocabulary().end()) return known->second;
  return std::nullopt;
}

}  // namespace dculab::engine
