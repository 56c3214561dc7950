// One clear message for each tokenizer.json, and each pattern in one, that cannot be used.
#include "engine/tokenizer/tokenizer_file.hpp"

#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/engine/support/tokenizer_fixtures.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

using nlohmann::json;

std::string refusal_of_tokenizer(const std::string& content) {
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
  return refusal_of_tokenizer(content.dump());
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

TEST_CASE("Broken JSON is reported with file and line", "[tokenizer]") {
  CHECK_THAT(refusal_of_tokenizer("{\n  \"model\": {\n    \"vocab\" 1\n"),
             ContainsSubstring("tokenizer.json:3:13: is not valid JSON ("));
  CHECK_THAT(refusal_of_tokenizer(""), ContainsSubstring("tokenizer.json:1:1: is not valid JSON ("));
  CHECK_THAT(refusal_of_tokenizer("{\"a\": \"\xFF\"}"), ContainsSubstring("tokenizer.json:1:8: is not valid JSON ("));
  CHECK_THAT(refusal_of_tokenizer("[1e999]"),
             ContainsSubstring("tokenizer.json:1:6: is not valid JSON (number overflow"));
  CHECK_THAT(refusal_of_tokenizer(R"({"model": 1, "model": 2})"), ContainsSubstring("key 'model' stands twice"));
  CHECK_THAT(refusal_of_tokenizer(std::string(100'000, '[')),
             ContainsSubstring("tokenizer.json:1: nested deeper than 64 levels"));
  CHECK_THAT(refusal_of_tokenizer(std::string(100'000, '[') + std::string(100'000, ']')),
             ContainsSubstring("nested deeper than 64 levels"));
  CHECK_THROWS_WITH(Tokenizer::load(kGoldens), ContainsSubstring("tokenizer/: is a folder"));
  CHECK_THROWS_WITH(Tokenizer::load(kGoldens + "none.json"), ContainsSubstring("none.json: cannot be opened"));
}

TEST_CASE("What is not supported BPE is refused by name", "[tokenizer]") {
  CHECK_THAT(error_of_patch(R"({"model": {"byte_fallback": true}})"),
             ContainsSubstring("model.byte_fallback: is not supported where the pre-tokenizer is ByteLevel"));
  CHECK_THAT(error_of_patch(R"({"pre_tokenizer": null})"),
             ContainsSubstring("decoder: does not go with a pre-tokenizer without ByteLevel"));
  CHECK_THAT(error_of_patch(R"({"decoder": {"type": "Fuse"}})"),
             ContainsSubstring("decoder: does not go with a pre-tokenizer that is ByteLevel"));
  CHECK_THAT(error_of_patch(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "ab"}})"),
             ContainsSubstring("pre_tokenizer.replacement: must be one character"));
  CHECK_THAT(error_of_patch(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "x"}})"),
             ContainsSubstring("'x' is not a way to prepend"));
  CHECK_THAT(error_of_patch(R"({"normalizer": {"type": "Replace", "pattern": {"Regex": " "}, "content": "_"}})"),
             ContainsSubstring("normalizer.pattern: only a String is supported here"));
  CHECK_THAT(
      error_of_patch(R"({"decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]}})"),
      ContainsSubstring("decoders[1]: must not stand behind"));
  CHECK_THAT(error_of_patch(R"({"decoder": {"type": "Strip", "content": " ", "start": 1, "stop": 0}})"),
             ContainsSubstring("decoder: Strip is supported behind Fuse only"));
  CHECK_THAT(error_of_patch(R"({"model": {"type": "Unigram"}})"),
             ContainsSubstring("model: the type 'Unigram' is not"));
  CHECK_THAT(error_of_patch(R"({"model": {"dropout": 0.1}})"), ContainsSubstring("model.dropout: must be null"));
  CHECK_THAT(error_of_patch(R"({"normalizer": {"type": "Lowercase"}})"),
             ContainsSubstring("'Lowercase' is not supported"));
  CHECK_THAT(error_of_patch(R"({"pre_tokenizer": {"type": "Whitespace"}})"), ContainsSubstring("'Whitespace' is not"));
  CHECK_THAT(error_of_patch(R"({"decoder": null})"), ContainsSubstring("decoder: must be ByteLevel, or"));
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
  const std::vector<std::string> refused = {R"([a&&b])",   R"([a[^b]])", R"([a[b-d]])", R"(\bx)",    R"(\hx)",
                                            R"([\W])",     R"(a{1,2}+)", R"(a{,2})",    R"((?m:a))", R"((*UTF))",
                                            R"(x(?i)y|z)", R"(\1)",      R"(\)",        R"(\u12)",   R"(\pL)"};
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
  CHECK(refusal_of_tokenizer(original.dump()) == "no error");
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
        CHECK_THAT(refusal_of_tokenizer(content.dump()),
                   ContainsSubstring("no error") || ContainsSubstring("tokenizer.json: "));
      }
    }
  }
}

TEST_CASE("Rules that blow a text up are refused before they take the memory", "[tokenizer]") {
  json content = small_tokenizer();
  json steps = json::array();
  const json step = {{"type", "Replace"}, {"pattern", {{"String", "e"}}}, {"content", std::string(100, 'e')}};
  for (int times = 0; times < 8; ++times) steps.push_back(step);
  content["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  content["added_tokens"] = json::array();
  content["post_processor"] = nullptr;
  const Tokenizer tokenizer = Tokenizer::parse(content.dump(), "tokenizer.json");
  REQUIRE_THROWS_WITH(tokenizer.encode("eeee", SpecialTokens::omit),
                      ContainsSubstring("turn a text into more than 1048832 bytes"));
  REQUIRE(tokenizer.encode("th th", SpecialTokens::omit).size() > 2);
  const json prepend = {{"type", "Prepend"}, {"prepend", std::string(3 << 20, 'e')}};
  content["normalizer"] = prepend;
  const Tokenizer prepending = Tokenizer::parse(content.dump(), "tokenizer.json");
  REQUIRE_THROWS_WITH(prepending.encode("th", SpecialTokens::omit), ContainsSubstring("turn a text into more than"));
  // A token has less room: there may be many.
  content["normalizer"] = step;
  content["added_tokens"] = {{{"id", 258}, {"content", std::string(100, 'e')}, {"normalized", true}}};
  CHECK_THAT(refusal_of_tokenizer(content.dump()),
             ContainsSubstring("tokenizer.json: the tokenizer's rules turn a text"));
}

TEST_CASE("A component of more than 64 steps is refused", "[tokenizer]") {
  const auto error_of_steps = [](const char* component, const char* list, const json& step, std::size_t steps) {
    json content = small_tokenizer();
    content[component] = {{"type", "Sequence"}, {list, std::vector<json>(steps, step)}};
    return refusal_of_tokenizer(content.dump());
  };
  const json normalizer = {{"type", "Replace"}, {"pattern", {{"String", "e"}}}, {"content", "a"}};
  CHECK(error_of_steps("normalizer", "normalizers", normalizer, 64) == "no error");
  CHECK_THAT(error_of_steps("normalizer", "normalizers", normalizer, 65),
             ContainsSubstring("normalizer: has more than 64 steps"));
  CHECK_THAT(error_of_steps("decoder", "decoders", normalizer, 65),
             ContainsSubstring("decoder: has more than 64 steps"));
}

TEST_CASE("A long name is told in part", "[tokenizer]") {
  json content = small_tokenizer();
  content["post_processor"]["single"][0]["SpecialToken"]["id"] = std::string(100'000, 'x');
  const std::string error = refusal_of_tokenizer(content.dump());
  CHECK_THAT(error, ContainsSubstring("post_processor.special_tokens.xxx"));
  CHECK(error.size() < 1000);
}

TEST_CASE("A hundred thousand added tokens are read", "[tokenizer]") {
  json content = small_tokenizer();
  json& added = content["added_tokens"];
  for (int id = 259; id < 100'000; ++id) added.push_back({{"id", id}, {"content", "<" + std::to_string(id) + ">"}});
  const Tokenizer tokenizer = Tokenizer::parse(content.dump(), "tokenizer.json");
  CHECK(tokenizer.encode("<99999>", SpecialTokens::omit) == std::vector<TokenId>{99'999});
}

}  // namespace dculab::engine
