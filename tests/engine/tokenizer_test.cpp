// The tokenizer gives what the Hugging Face `tokenizers` library gives (scripts/golden/make_tokenizer_goldens.py), and
// one clear message for files that it cannot read.
#include "engine/tokenizer/tokenizer.hpp"

#include <fstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/checkpoint/json.hpp"
#include "engine/tokenizer/stream_decoder.hpp"
#include "engine/tokenizer/utf8.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;

const std::string kGoldens = std::string(DCULAB_SOURCE_DIR) + "/tests/golden/tokenizer/";
const std::vector<std::string> kKinds = {"gpt2", "llama3", "qwen2"};

Tokenizer fixture(const std::string& kind) { return Tokenizer::load(kGoldens + kind + ".json"); }

json fixture_json(const std::string& kind) {
  const std::string path = kGoldens + kind + ".json";
  return parse_json(read_text(path), path);
}

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

std::string error_of(const std::string& content) {
  try {
    static_cast<void>(Tokenizer::parse(content, "tokenizer.json"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// The fixture with a JSON merge patch applied.
std::string error_of_patch(const std::string& patch) {
  json content = fixture_json("gpt2");
  content.merge_patch(json::parse(patch));
  return error_of(content.dump());
}

// Every byte is a token, and two merges.
json small_tokenizer() {
  json vocabulary = json::object();
  const json known = fixture_json("gpt2")["model"]["vocab"];
  for (const auto& [token, id] : known.items()) {
    if (id < 256) vocabulary[token] = id;
  }
  vocabulary["th"] = 256;
  vocabulary["the"] = 257;
  const char* rest = R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 258, "content": "<end>", "single_word": false, "lstrip": true, "rstrip": true,
                      "normalized": true, "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Isolated", "invert": false},
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<end>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"<end>": {"id": "<end>", "ids": [258], "tokens": ["<end>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "fuse_unk": false, "byte_fallback": false,
              "ignore_merges": false, "merges": ["t h", ["th", "e"]]}})";
  json content = json::parse(rest);
  content["model"]["vocab"] = vocabulary;
  return content;
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

TEST_CASE("Broken JSON is reported with file and line", "[tokenizer]") {
  CHECK_THAT(error_of("{\n  \"model\": {\n    \"vocab\" 1\n"),
             ContainsSubstring("tokenizer.json:3: is not valid JSON ("));
  CHECK_THAT(error_of(""), ContainsSubstring("tokenizer.json:1: is not valid JSON ("));
  CHECK_THAT(error_of("{\"a\": \"\xFF\"}"), ContainsSubstring("tokenizer.json:1: is not valid JSON ("));
  CHECK_THAT(error_of("[1e999]"), ContainsSubstring("tokenizer.json: is not valid JSON ("));
  CHECK_THAT(error_of(R"({"model": 1, "model": 2})"), ContainsSubstring("key 'model' stands twice"));
  CHECK_THAT(error_of(std::string(100'000, '[')), ContainsSubstring("tokenizer.json:1: is not valid JSON ("));
  CHECK_THAT(error_of(std::string(100'000, '[') + std::string(100'000, ']')), ContainsSubstring("must be an object"));
  CHECK_THROWS_WITH(Tokenizer::load(kGoldens), ContainsSubstring("tokenizer/: is a folder"));
  CHECK_THROWS_WITH(Tokenizer::load(kGoldens + "none.json"), ContainsSubstring("none.json: cannot be opened"));
}

TEST_CASE("What is not byte-level BPE is refused by name", "[tokenizer]") {
  const std::string sentencepiece = "tokenizer.json: SentencePiece-style BPE is not supported";
  CHECK_THAT(error_of_patch(R"({"model": {"byte_fallback": true}})"), ContainsSubstring(sentencepiece));
  CHECK_THAT(error_of_patch(R"({"pre_tokenizer": null})"), ContainsSubstring(sentencepiece));
  CHECK_THAT(error_of_patch(R"({"pre_tokenizer": {"type": "Metaspace"}})"), ContainsSubstring(sentencepiece));
  CHECK_THAT(error_of_patch(R"({"normalizer": {"type": "Prepend", "prepend": "_"}})"),
             ContainsSubstring(sentencepiece));
  CHECK_THAT(error_of_patch(R"({"model": {"type": "Unigram"}})"),
             ContainsSubstring("model: the type 'Unigram' is not"));
  CHECK_THAT(error_of_patch(R"({"model": {"dropout": 0.1}})"), ContainsSubstring("model.dropout: must be null"));
  CHECK_THAT(error_of_patch(R"({"normalizer": {"type": "Lowercase"}})"),
             ContainsSubstring("'Lowercase' is not supported"));
  CHECK_THAT(error_of_patch(R"({"pre_tokenizer": {"type": "Whitespace"}})"), ContainsSubstring("'Whitespace' is not"));
  CHECK_THAT(error_of_patch(R"({"decoder": null})"), ContainsSubstring("decoder: must be ByteLevel"));
  CHECK_THAT(error_of_patch(R"({"decoder": {"type": "WordPiece"}})"),
             ContainsSubstring("'WordPiece' is not supported"));
  CHECK_THAT(error_of_patch(R"({"post_processor": {"type": "BertProcessing"}})"),
             ContainsSubstring("'BertProcessing' is"));
  CHECK_THAT(error_of_patch(R"({"model": {"end_of_word_suffix": "</w>"}})"),
             ContainsSubstring("suffix: is not supported"));
}

TEST_CASE("A file that contradicts itself is refused", "[tokenizer]") {
  CHECK_THAT(error_of_patch(R"({"model": {"vocab": {"a": -1}}})"),
             ContainsSubstring("model.vocab[\"a\"]: the token id"));
  CHECK_THAT(error_of_patch(R"({"model": {"vocab": {"a": 4294967296}}})"), ContainsSubstring("outside 0 ... 2097151"));
  CHECK_THAT(error_of_patch(R"({"model": {"vocab": {"a": 1.5}}})"), ContainsSubstring("must be a token id"));
  CHECK_THAT(error_of_patch(R"({"model": {"vocab": {"zz9": 7}}})"), ContainsSubstring("two tokens have the id 7"));
  CHECK_THAT(error_of_patch(R"({"model": {"vocab": null}})"), ContainsSubstring("model.vocab: must be an object"));
  CHECK_THAT(error_of_patch(R"({"model": {"merges": ["zq zq"]}})"), ContainsSubstring("'zqzq' is not in model.vocab"));
  CHECK_THAT(error_of_patch(R"({"model": {"merges": ["a b", "abc"]}})"),
             ContainsSubstring("model.merges[1]: must be two"));
  CHECK_THAT(error_of_patch(R"({"added_tokens": [{"id": 9, "content": "a"}]})"),
             ContainsSubstring("'a' has the id 9, but"));
  CHECK_THAT(error_of_patch(R"({"added_tokens": [{"id": 9}]})"), ContainsSubstring("added_tokens[0].content: must be"));
  CHECK_THAT(error_of_patch(R"({"post_processor": {"type": "TemplateProcessing", "single": []}})"),
             ContainsSubstring("post_processor.single: the text must stand"));
}

TEST_CASE("A pattern that PCRE2 would read differently is refused", "[tokenizer]") {
  const std::vector<std::string> refused = {R"([a&&b])",  R"([a[b]])", R"(\bx)",    R"(\hx)",    R"([\W])",
                                            R"(a{1,2}+)", R"(a{,2})",  R"((?m:a))", R"((*UTF))", R"(x(?i)y|z)",
                                            R"(\1)",      R"(\)",      R"(\u12)",   R"(\pL)"};
  for (const std::string& pattern : refused) {
    INFO(pattern);
    CHECK_THROWS_WITH(Regex(pattern, PatternKind::regex), ContainsSubstring("which is not supported"));
  }
  CHECK_THROWS_WITH(Regex("(a", PatternKind::regex), ContainsSubstring("the pattern '(a' is not usable"));
  CHECK_THROWS_WITH(Regex(R"(\p{Klingon})", PatternKind::regex), ContainsSubstring("is not usable"));
  CHECK(pcre_from_oniguruma(R"(\s[^\s\w]\u00e9\v\p{Han}\p{L}a{2}b{x}\\\.)") ==
        R"(\p{White_Space}[^\p{White_Space}\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]\x{00e9}\x{0B}\p{sc:Han}\p{L}a{2}b{x}\\\.)");
}

TEST_CASE("A pattern that backtracks without end is an error, not a hang", "[tokenizer]") {
  const Regex regex(R"((a|aa)+$)", PatternKind::regex);
  CHECK_THROWS_WITH(regex.cover(std::string(100, 'a') + "b"), ContainsSubstring("gave up on this text"));
}

TEST_CASE("Wrong types anywhere in the file give a message, never a crash", "[tokenizer]") {
  const json original = small_tokenizer();
  CHECK(error_of(original.dump()) == "no error");
  json short_file = original;
  short_file["model"]["vocab"] = json::object();  // 256 equal entries teach nothing
  const json paths = short_file.flatten();
  const std::vector<json> wrong = {nullptr,
                                   true,
                                   -1,
                                   1e300,
                                   18446744073709551615U,
                                   "x",
                                   json::array(),
                                   json::object(),
                                   json::array({json::object()})};
  for (const auto& [path, value] : paths.items()) {
    for (json::json_pointer place(path); !place.empty(); place.pop_back()) {
      for (const json& replacement : wrong) {
        json content = original;
        content[place] = replacement;
        INFO(place.to_string() << " = " << replacement);
        CHECK_THAT(error_of(content.dump()), ContainsSubstring("no error") || ContainsSubstring("tokenizer.json: "));
      }
    }
  }
}

}  // namespace dculab::engine
