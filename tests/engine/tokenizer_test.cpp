// The tokenizer gives what the Hugging Face `tokenizers` library gives (scripts/golden/make_tokenizer_goldens.py).
#include "engine/tokenizer/tokenizer.hpp"

#include <fstream>
#include <string>
#include <vector>

#include "engine/tokenizer/stream_decoder.hpp"
#include "engine/tokenizer/utf8.hpp"
#include "tests/engine/support/tokenizer_fixtures.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;

const std::vector<std::string> kKinds = {"gpt2", "llama3", "qwen2"};

std::vector<json> read_lines(const std::string& name) {
  std::ifstream stream(kGoldens + name);
  std::vector<json> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  return lines;
}

// As texts.jsonl says it.
struct Answer {
  Ids ids;
  std::string shown;
  std::string skipped;
};

Answer read_answer(const json& node, const std::string& text) {
  if (node.is_array()) return {node.get<Ids>(), text, text};
  return {node["ids"].get<Ids>(), node["shown"].get<std::string>(), node["skipped"].get<std::string>()};
}

// Also checks that the decoder never hands over a part of a character.
std::string decode_in_stream(const Tokenizer& tokenizer, const Ids& ids) {
  StreamDecoder decoder(tokenizer, SpecialText::show);
  std::string text;
  for (const TokenId id : ids) {
    const std::string part = decoder.push(id);
    if (valid_prefix(part) != part.size()) FAIL("the stream decoder gave a part of a character");
    text += part;
  }
  return text + decoder.finish();
}

}  // namespace

TEST_CASE("Encoding and decoding agree with the tokenizers library", "[tokenizer]") {
  const std::vector<json> lines = read_lines("texts.jsonl");
  REQUIRE(lines.size() > 10'000);
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    INFO(kKinds[kind]);
    const Tokenizer tokenizer = fixture(kKinds[kind]);
    const Ids prefix = lines[0][kKinds[kind]].get<Ids>();
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const std::string text = lines[i][0].get<std::string>();
      const Answer answer = read_answer(lines[i][kind + 1], text);
      INFO(lines[i][0]);
      const Ids ids = tokenizer.encode(text, SpecialTokens::omit);
      if (ids != answer.ids) CHECK(ids == answer.ids);  // the macro alone is slow
      Ids with_prefix = prefix;
      with_prefix.insert(with_prefix.end(), ids.begin(), ids.end());
      if (tokenizer.encode(text, SpecialTokens::add) != with_prefix) FAIL_CHECK("special tokens differ");
      if (tokenizer.decode(ids, SpecialText::show) != answer.shown) FAIL_CHECK("decoded text differs");
      if (tokenizer.decode(ids, SpecialText::skip) != answer.skipped) FAIL_CHECK("text without special tokens differs");
      if (decode_in_stream(tokenizer, ids) != answer.shown) FAIL_CHECK("text decoded in a stream differs");
    }
  }
}

TEST_CASE("Random ids decode as with the tokenizers library", "[tokenizer]") {
  const json lists = read_lines("ids.jsonl").at(0);
  for (const std::string& kind : kKinds) {
    const Tokenizer tokenizer = fixture(kind);
    REQUIRE(lists[kind].size() == 400);
    for (const json& entry : lists[kind]) {
      const Ids ids = entry[0].get<Ids>();
      INFO(kind << entry);
      CHECK(tokenizer.decode(ids, SpecialText::show) == entry[1].get<std::string>());
      CHECK(decode_in_stream(tokenizer, ids) == entry[1].get<std::string>());
    }
  }
}

TEST_CASE("Every option of the file acts as in the tokenizers library", "[tokenizer]") {
  const std::vector<json> variants = read_lines("variants.jsonl");
  REQUIRE(variants.size() > 40);
  for (const json& variant : variants) {
    json content = fixture_json(variant[0].get<std::string>());
    content.merge_patch(variant[1]);
    const Tokenizer tokenizer = Tokenizer::parse(content.dump(), "variant");
    INFO(variant[0] << " " << variant[1]);
    for (const json& entry : variant[2]) {
      INFO(entry[0]);
      const Ids ids = tokenizer.encode(entry[0].get<std::string>(), SpecialTokens::add);
      CHECK(ids == entry[1].get<Ids>());
      CHECK(tokenizer.decode(ids, SpecialText::skip) == entry[2].get<std::string>());
    }
  }
}

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
