#include "engine/tokenizer/bpe.hpp"

#include <algorithm>
#include <iterator>
#include <queue>
#include <tuple>

#include "core/error.hpp"
#include "engine/tokenizer/byte_alphabet.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"

namespace dculab::engine {
namespace {

// A merge that was possible when it was queued. `rank` tells whether it still is: no two pairs share one.
struct Candidate {
  std::int32_t rank = 0;
  std::size_t position = 0;  // of the left symbol

  // For std::priority_queue, whose top is the greatest: lowest rank first, then leftmost.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return std::tie(a.rank, a.position) > std::tie(b.rank, b.position);
  }
};

TokenId token_of(const StringMap<TokenId>& vocabulary, const std::string& token) {
  const auto found = vocabulary.find(token);
  if (found == vocabulary.end())
    throw InputError("model.merges: the token " + in_quotes(token) + " is not in model.vocab");
  return found->second;
}

// What stands for a byte in the vocabulary.
std::string byte_name(unsigned char byte, Spelling spelling) {
  const char character = static_cast<char>(byte);
  return spelling == Spelling::bytes ? to_byte_alphabet({&character, 1}) : byte_fallback_token(byte);
}

}  // namespace

Bpe::Bpe(BpeModel model) : model_(std::move(model)), merges_(model_.merges.size()) {
  std::int32_t rank = 0;
  for (const auto& [left, right] : model_.merges) {
    const TokenId merged = token_of(model_.vocabulary, left + right);
    merges_.insert(token_of(model_.vocabulary, left), token_of(model_.vocabulary, right), {rank++, merged});
  }
  model_.merges = {};

  if (const TokenId* unknown = find(model_.unknown_token); unknown != nullptr && !model_.unknown_token.empty())
    unknown_ = *unknown;
  bool needs_unknown = model_.spelling == Spelling::characters;
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    const TokenId* found = find(byte_name(static_cast<unsigned char>(byte), model_.spelling));
    byte_tokens_[byte] = found == nullptr ? kNoToken : *found;
    needs_unknown = needs_unknown || found == nullptr;
  }
  if (needs_unknown && unknown_ == kNoToken && !model_.unknown_token.empty())
    throw InputError("model.unk_token: " + in_quotes(model_.unknown_token) + " is not in model.vocab");
}

const TokenId* Bpe::find(std::string_view token) const {
  const auto found = model_.vocabulary.find(token);
  return found == model_.vocabulary.end() ? nullptr : &found->second;
}

void Bpe::encode(std::string_view word, std::vector<TokenId>& ids) const {
  if (model_.ignore_merges) {
    const TokenId* found = model_.spelling == Spelling::bytes ? find(to_byte_alphabet(word)) : find(word);
    if (found != nullptr) return ids.push_back(*found);
  }
  std::vector<TokenId> symbols = spell(word);
  if (symbols.size() <= kShortWord) {
    merge_short(symbols);
  } else {
    merge_long(symbols);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

std::vector<TokenId> Bpe::spell(std::string_view word) const {
  return model_.spelling == Spelling::bytes ? spell_bytes(word) : spell_characters(word);
}

std::vector<TokenId> Bpe::spell_bytes(std::string_view word) const {
  std::vector<TokenId> symbols;
  symbols.reserve(word.size());
  bool after_unknown = false;
  for (const char character : word) {
    const TokenId token = byte_tokens_[static_cast<unsigned char>(character)];
    const bool is_unknown = token == kNoToken;
    if (!is_unknown) symbols.push_back(token);
    if (is_unknown && unknown_ != kNoToken && !(after_unknown && model_.fuse_unknown)) symbols.push_back(unknown_);
    after_unknown = is_unknown;
  }
  return symbols;
}

// An unknown token is held back until a known character or the end: what falls back to bytes in between goes first, as
// in the tokenizers library.
std::vector<TokenId> Bpe::spell_characters(std::string_view word) const {
  std::vector<TokenId> symbols;
  symbols.reserve(word.size());
  bool holds_unknown = false;
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view character = rest.substr(0, first_unit(rest).size);
    rest.remove_prefix(character.size());
    if (const TokenId* known = find(character); known != nullptr) {
      if (std::exchange(holds_unknown, false)) symbols.push_back(unknown_);
      symbols.push_back(*known);
    } else if (!fall_back(character, symbols) && unknown_ != kNoToken) {
      if (holds_unknown && !model_.fuse_unknown) symbols.push_back(unknown_);
      holds_unknown = true;
    }
  }
  if (holds_unknown) symbols.push_back(unknown_);
  return symbols;
}

bool Bpe::fall_back(std::string_view character, std::vector<TokenId>& symbols) const {
  const auto token_of = [this](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
  const bool all_known = std::ranges::none_of(character, [&](char byte) { return token_of(byte) == kNoToken; });
  if (!model_.byte_fallback || !all_known) return false;
  std::ranges::transform(character, std::back_inserter(symbols), token_of);
  return true;
}

void Bpe::merge_short(std::vector<TokenId>& symbols) const {
  std::array<Merge, kShortWord> merges;  // merges[i] joins symbols[i] and symbols[i + 1]
  std::size_t pairs = symbols.empty() ? 0 : symbols.size() - 1;
  for (std::size_t i = 0; i < pairs; ++i) merges[i] = merges_.find(symbols[i], symbols[i + 1]);
  while (pairs > 0) {
    Merge* const end = merges.data() + pairs;
    Merge* const best =
        std::min_element(merges.data(), end, [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
    if (best->rank == Merge::kNever) break;
    const auto i = static_cast<std::size_t>(best - merges.data());
    symbols[i] = best->token;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    std::copy(best + 1, end, best);
    --pairs;
    if (i < pairs) merges[i] = merges_.find(symbols[i], symbols[i + 1]);
    if (i > 0) merges[i - 1] = merges_.find(symbols[i - 1], symbols[i]);
  }
}

void Bpe::merge_long(std::vector<TokenId>& symbols) const {
  const std::size_t end = symbols.size();
  std::vector<std::size_t> next(end);      // of a symbol that has been absorbed: meaningless
  std::vector<std::size_t> previous(end);  // of the first symbol: meaningless
  std::priority_queue<Candidate> queue;
  const auto merge_at = [&](std::size_t left) {
    return symbols[left] == kNoToken || next[left] == end ? Merge{} : merges_.find(symbols[left], symbols[next[left]]);
  };
  const auto offer = [&](std::size_t left) {
    if (const Merge merge = merge_at(left); merge.rank != Merge::kNever) queue.push({merge.rank, left});
  };
  for (std::size_t i = 0; i < end; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;
  }
  for (std::size_t i = 0; i < end; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const Merge merge = merge_at(best.position);
    if (merge.rank != best.rank) continue;
    const std::size_t absorbed = next[best.position];
    symbols[best.position] = merge.token;
    symbols[absorbed] = kNoToken;
    next[best.position] = next[absorbed];
    if (next[absorbed] != end) previous[next[absorbed]] = best.position;
    if (best.position != 0) offer(previous[best.position]);
    offer(best.position);
  }
  std::erase(symbols, kNoToken);
}

void WordEncoder::append(std::string_view word) {
  const auto seen = seen_.find(word);
  if (seen != seen_.end()) {
    const auto [begin, end] = seen->second;
    const std::size_t size = ids_.size();
    ids_.resize(size + (end - begin));
    std::copy_n(ids_.data() + begin, end - begin, ids_.data() + size);
    return;
  }
  const std::size_t begin = ids_.size();
  bpe_.encode(word, ids_);
  if (word.size() <= kLongestRemembered && seen_.size() < kWordsRemembered) {
    seen_.emplace(word, Range{begin, ids_.size()});
  }
}

}  // namespace dculab::engine
