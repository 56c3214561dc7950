// The tokenizer gives what the Hugging Face `tokenizers` library gives (scripts/golden/make_tokenizer_goldens.py).
#include "engine/tokenizer/tokenizer.hpp"

#include <string>
#include <vector>

#include "engine/tokenizer/stream_decoder.hpp"
#include "fields/utf8.hpp"
#include "tests/engine/support/tokenizer_fixtures.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

using Ids = std::vector<TokenId>;

const std::vector<std::string> kKinds = {"gpt2", "llama3", "qwen2"};

}  // namespace

TEST_CASE("Encoding and decoding agree with the tokenizers library", "[tokenizer]") { check_texts(kGoldens, kKinds); }

TEST_CASE("Random ids decode as with the tokenizers library", "[tokenizer]") { check_random_ids(kGoldens, kKinds); }

TEST_CASE("Every option of the file acts as in the tokenizers library", "[tokenizer]") { check_variants(kGoldens); }

TEST_CASE("Tokens are found by name", "[tokenizer]") {
  const Tokenizer tokenizer = fixture("llama3");
  CHECK(tokenizer.vocab_size() == 2005);
  CHECK(tokenizer.token_id("<|begin_of_text|>") == 2000);
  CHECK(tokenizer.token_id("Ġ").has_value());
  CHECK_FALSE(tokenizer.token_id("no such token").has_value());
  CHECK(tokenizer.token_bytes(*tokenizer.token_id("Ġ"), SpecialText::show) == " ");
  CHECK(tokenizer.token_bytes(2000, SpecialText::skip).empty());
  CHECK(tokenizer.token_bytes(-1, SpecialText::show).empty());
  CHECK(tokenizer.token_bytes(2005, SpecialText::show).empty());
}

TEST_CASE("Text that is not UTF-8 is read with replacement characters", "[tokenizer]") {
  // Pieces as in the Unicode standard, table 3-8: one U+FFFD for each longest beginning of a character.
  CHECK(repaired("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64") == "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  CHECK(repaired("\xC0\xAF\xED\xA0\x80\xF4\x90\x80\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  for (const std::string& kind : kKinds) {
    const Tokenizer tokenizer = fixture(kind);
    CHECK(tokenizer.encode("a\xFFz\xE4\xBD", SpecialTokens::add) ==
          tokenizer.encode("a\uFFFDz\uFFFD", SpecialTokens::add));
  }
}

TEST_CASE("A stream holds back a character until it is whole", "[tokenizer]") {
  const Tokenizer tokenizer = fixture("gpt2");
  const auto byte_token = [&](const char* name) { return tokenizer.token_id(name).value(); };
  StreamDecoder decoder(tokenizer, SpecialText::show);
  CHECK(decoder.push(byte_token("ð")).empty());  // F0 9F 99 82 is U+1F642
  CHECK(decoder.push(byte_token("Ł")).empty());
  CHECK(decoder.push(byte_token("Ļ")).empty());
  CHECK(decoder.push(byte_token("Ĥ")) == "\U0001F642");
  CHECK(decoder.finish().empty());
  CHECK(decoder.push(byte_token("ð")).empty());
  CHECK(decoder.push(byte_token("a")) == "\uFFFDa");
  CHECK(decoder.push(byte_token("ð")).empty());
  CHECK(decoder.finish() == "\uFFFD");
  CHECK(decoder.finish().empty());
}

TEST_CASE("A long text is the sum of its words", "[tokenizer]") {
  const Tokenizer tokenizer = fixture("llama3");
  const Ids once = tokenizer.encode(" attention", SpecialTokens::omit);
  std::string text;
  Ids expected;
  for (int i = 0; i < 100'000; ++i) {
    text += " attention";
    expected.insert(expected.end(), once.begin(), once.end());
  }
  CHECK((tokenizer.encode(text, SpecialTokens::omit) == expected));
  const std::string one_word(300'000, 'a');
  CHECK((tokenizer.decode(tokenizer.encode(one_word, SpecialTokens::omit), SpecialText::show) == one_word));
}

}  // namespace dculab::engine
