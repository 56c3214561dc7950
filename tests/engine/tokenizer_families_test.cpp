// Tokenizers built as those of Llama-2, Mistral, BLOOM and Falcon give what the tokenizers library gives
// (scripts/golden/make_family_tokenizer_goldens.py).
#include <string>
#include <vector>

#include "tests/engine/support/tokenizer_fixtures.hpp"

namespace dculab::engine {
namespace {

const std::vector<std::string> kFamilies = {"llama2", "mistral", "bloom", "falcon"};

std::string streamed(StreamDecoder& decoder, const Tokenizer& tokenizer, const std::vector<std::string>& tokens) {
  std::string parts;
  for (const std::string& token : tokens) parts += decoder.push(tokenizer.token_id(token).value()) + "|";
  return parts + decoder.finish();
}

}  // namespace

TEST_CASE("Texts in other families' tokenizers agree with the tokenizers library", "[tokenizer]") {
  check_texts(kFamilyGoldens, kFamilies);
}

TEST_CASE("Random ids, mostly bytes, decode as with the tokenizers library", "[tokenizer]") {
  check_random_ids(kFamilyGoldens, kFamilies);
}

TEST_CASE("Every option of a SentencePiece file acts as in the tokenizers library", "[tokenizer]") {
  check_variants(kFamilyGoldens);
}

TEST_CASE("A stream holds back bytes that stand in for a character, and drops the first space", "[tokenizer]") {
  const Tokenizer tokenizer = fixture("llama2", kFamilyGoldens);
  StreamDecoder decoder(tokenizer, SpecialText::skip);
  CHECK(streamed(decoder, tokenizer, {"<s>", "\u2581", "a", "\u2581"}) == "||a| |");
  CHECK(streamed(decoder, tokenizer, {"<0xF0>", "<0x9F>", "<0x99>", "<0x82>", "a"}) == "||||\U0001F642a|");
  // One wrong byte spoils the run: the library decodes it as a whole.
  CHECK(streamed(decoder, tokenizer, {"<0x41>", "<0xFF>", "a"}) == "||\uFFFD\uFFFDa|");
  CHECK(streamed(decoder, tokenizer, {"a", "<0x41>"}) == "a||A");
  CHECK(streamed(decoder, tokenizer, {"a", "<0xE2>"}) == "a||\uFFFD");
}

TEST_CASE("A long text without words of its own is encoded in one go", "[tokenizer]") {
  const Tokenizer tokenizer = fixture("llama2", kFamilyGoldens);
  std::string text = "attention";
  for (int i = 0; i < 20'000; ++i) text += " attention";
  const auto ids = tokenizer.encode(text, SpecialTokens::omit);
  CHECK((tokenizer.decode(ids, SpecialText::show) == text));
  CHECK(ids.size() % 20'001 == 0);
}

}  // namespace dculab::engine
