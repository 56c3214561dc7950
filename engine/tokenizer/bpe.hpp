// Byte-pair encoding: the tokens of one word.
//
// Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units"; over bytes: GPT-2.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "engine/tokenizer/merge_table.hpp"

namespace dculab::engine {

// Lets a map with string keys be asked for a string_view.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <typename Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

// What a word is spelled with before anything is merged.
enum class Spelling : std::uint8_t {
  bytes,       // words are bytes, tokens are written in the byte alphabet: GPT-2
  characters,  // words and tokens are text: SentencePiece
};

// "model" of tokenizer.json.
struct BpeModel {
  Spelling spelling = Spelling::bytes;
  bool byte_fallback = false;  // characters: one that is no token is spelled in bytes, "<0x0A>", where all are tokens
  StringMap<TokenId> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;  // first merged first
  std::string unknown_token;                                // stands for what has no token; empty: it vanishes
  bool fuse_unknown = false;                                // one unknown token for a run of it
  bool ignore_merges = false;                               // a word that is a token is not spelled out
};

class Bpe {
 public:
  // Throws InputError when merges and vocabulary contradict each other.
  explicit Bpe(BpeModel model);

  void encode(std::string_view word, std::vector<TokenId>& ids) const;

  [[nodiscard]] const StringMap<TokenId>& vocabulary() const { return model_.vocabulary; }

 private:
  static constexpr std::size_t kShortWord = 32;  // symbols; up to here a scan beats a heap
  static constexpr TokenId kNoToken = -1;

  [[nodiscard]] const TokenId* find(std::string_view token) const;  // null: not in the vocabulary
  [[nodiscard]] std::vector<TokenId> spell(std::string_view word) const;
  [[nodiscard]] std::vector<TokenId> spell_bytes(std::string_view word) const;
  [[nodiscard]] std::vector<TokenId> spell_characters(std::string_view word) const;
  [[nodiscard]] bool fall_back(std::string_view character, std::vector<TokenId>& symbols) const;
  void merge_short(std::vector<TokenId>& symbols) const;
  void merge_long(std::vector<TokenId>& symbols) const;

  BpeModel model_;
  MergeTable merges_;
  // The token of each byte, in the byte alphabet or as "<0x0A>"; kNoToken: it is not in the vocabulary.
  std::array<TokenId, 256> byte_tokens_{};
  TokenId unknown_ = kNoToken;
};

// Appends words to one list of ids, and copies the ids of a word that was there before.
class WordEncoder {
 public:
  // Both must outlive the encoder; `ids` may only grow in between.
  WordEncoder(const Bpe& bpe, std::vector<TokenId>& ids) : bpe_(bpe), ids_(ids) {}

  void append(std::string_view word);

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  static constexpr std::size_t kLongestRemembered = 64;       // bytes
  static constexpr std::size_t kWordsRemembered = 1U << 16U;  // bounds the memory

  const Bpe& bpe_;
  std::vector<TokenId>& ids_;
  StringMap<Range> seen_;  // where in ids_ a word stands
};

}  // namespace dculab::engine
