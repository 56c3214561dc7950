// Any bytes as a tokenizer.json or, when the first byte is odd, as text for a tokenizer that is sound: accepted or
// refused with an InputError, never anything else. Text must survive the way there and back.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "engine/tokenizer/stream_decoder.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "fields/utf8.hpp"

namespace {

using namespace dculab;
using namespace dculab::engine;

Tokenizer fixture(const std::string& kind) {
  return Tokenizer::load(std::string(DCULAB_SOURCE_DIR) + "/tests/golden/tokenizer/" + kind + ".json");
}

std::string decode_in_stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  StreamDecoder decoder(tokenizer, SpecialText::show);
  std::string text;
  for (const TokenId id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

// What comes back, which is the text itself unless the tokenizer normalizes it.
std::string there_and_back(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<TokenId> ids = tokenizer.encode(text, SpecialTokens::omit);
  const std::string back = tokenizer.decode(ids, SpecialText::show);
  if (decode_in_stream(tokenizer, ids) != back) std::abort();
  return back;
}

void read_as_tokenizer(const std::string& json) {
  const Tokenizer tokenizer = Tokenizer::parse(json, "fuzz");
  there_and_back(tokenizer, "The 3 cafe\u0301s, <end>  don't\tmix 12\u00bd \U0001F600\n\n x");
}

void read_as_text(const std::string& text) {
  static const std::array<Tokenizer, 2> verbatim = {fixture("gpt2"), fixture("llama3")};
  static const Tokenizer normalizing = fixture("qwen2");
  for (const Tokenizer& tokenizer : verbatim) {
    if (there_and_back(tokenizer, text) != repaired(text)) std::abort();
  }
  there_and_back(normalizing, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 2 == 0)
      read_as_tokenizer(rest);
    else
      read_as_text(rest);
  } catch (const InputError&) {
  }
  return 0;
}
