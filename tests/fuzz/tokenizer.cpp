// tokenizer.json or, when the first byte is odd, text for tokenizers that are sound. Text must survive the way there
// and back.
#include "engine/tokenizer/tokenizer.hpp"

#include <array>
#include <string>
#include <vector>

#include "engine/tokenizer/stream_decoder.hpp"
#include "fields/utf8.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

using engine::SpecialText;
using engine::SpecialTokens;
using engine::Tokenizer;

Tokenizer golden_tokenizer(const std::string& kind) {
  return Tokenizer::load(std::string(DCULAB_SOURCE_DIR) + "/tests/golden/tokenizer/" + kind + ".json");
}

std::string decode_in_stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  engine::StreamDecoder decoder(tokenizer, SpecialText::show);
  std::string text;
  for (const TokenId id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

// What comes back, which is the text itself unless the tokenizer normalizes it.
std::string there_and_back(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<TokenId> ids = tokenizer.encode(text, SpecialTokens::omit);
  std::string back = tokenizer.decode(ids, SpecialText::show);
  require(decode_in_stream(tokenizer, ids) == back, "a stream decodes to the same text");
  return back;
}

void read_as_tokenizer(const std::string& json) {
  const Tokenizer tokenizer = Tokenizer::parse(json, "fuzz");
  there_and_back(tokenizer, "The 3 cafe\u0301s, <end>  don't\tmix 12\u00bd \U0001F600\n\n x");
}

void read_as_text(const std::string& text) {
  static const std::array<Tokenizer, 2> verbatim = {golden_tokenizer("gpt2"), golden_tokenizer("llama3")};
  static const Tokenizer normalizing = golden_tokenizer("qwen2");
  for (const Tokenizer& tokenizer : verbatim)
    require(there_and_back(tokenizer, text) == repaired(text), "text survives the way there and back");
  there_and_back(normalizing, text);
}

}  // namespace

void read_any_tokenizer(std::string_view input) {
  if (input.empty()) return;
  const std::string rest(input.substr(1));
  if (static_cast<unsigned char>(input[0]) % 2 == 0)
    read_as_tokenizer(rest);
  else
    read_as_text(rest);
}

}  // namespace dculab::fuzz
