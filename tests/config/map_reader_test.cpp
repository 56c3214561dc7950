#include "config/map_reader.hpp"

#include <functional>
#include <string>

#include "config/yaml_text.hpp"
#include "core/batch.hpp"
#include "fields/json_text.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

// Everything a reading of `yaml` complains about, "" when nothing.
std::string complaints(const std::string& yaml, const std::function<void(MapReader&)>& read) {
  try {
    const Node node = parse_yaml("f.yaml", yaml);
    ProblemList problems("f.yaml");
    MapReader reader(&node, "", problems);
    read(reader);
    reader.finish();
    problems.throw_if_any();
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string integer_complaint(const std::string& text) {
  return complaints("block_size: " + text, [](MapReader& reader) {
    int value = 0;
    reader.required("block_size", value, between(1, 256));
  });
}

TEST_CASE("integers are plain decimal digits") {
  CHECK(integer_complaint("16").empty());
  CHECK(integer_complaint("256").empty());
  CHECK(integer_complaint("010") == "f.yaml:1:13: block_size: '010' begins with a zero; remove it");
  CHECK_THAT(integer_complaint("0x10"), ContainsSubstring("not a whole number"));
  CHECK_THAT(integer_complaint("1_000"), ContainsSubstring("not a whole number"));
  CHECK_THAT(integer_complaint("16.0"), ContainsSubstring("not a whole number"));
  CHECK_THAT(integer_complaint("1e2"), ContainsSubstring("not a whole number"));
  CHECK_THAT(integer_complaint("99999999999"), ContainsSubstring("too large"));
  CHECK_THAT(integer_complaint("0"), ContainsSubstring("'0' is out of range; it must be at least 1 and at most 256"));
  CHECK_THAT(integer_complaint("-3"), ContainsSubstring("out of range"));
  CHECK_THAT(integer_complaint("[1]"), ContainsSubstring("is a list; write a whole number"));
  CHECK_THAT(integer_complaint("{a: 1}"), ContainsSubstring("is a map; write a whole number"));
  CHECK_THAT(integer_complaint(""), ContainsSubstring("has no value; write a whole number"));
  CHECK_THAT(integer_complaint("~"), ContainsSubstring("has no value"));
}

TEST_CASE("all problems are reported at once, in the order of the file") {
  const std::string found =
      complaints("block_sise: 16\ndtype: f17\nblock_sise: 8\nlatency: 80\n", [](MapReader& reader) {
        int block_size = 0;
        Dtype dtype = Dtype::f16;
        Seconds latency;
        reader.required("latency", latency);
        reader.optional("dtype", dtype);
        reader.required("block_size", block_size);
      });
  CHECK(found ==
        "f.yaml:1:1: block_size: missing; add it\n"
        "f.yaml:1:1: block_sise: unknown key; did you mean 'block_size'?\n"
        "f.yaml:2:8: dtype: 'f17' is not a dtype; use one of f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4\n"
        "f.yaml:3:1: block_sise: stands twice; keep one\n"
        "f.yaml:4:10: latency: '80' has no unit; write for example '80 s', '80 ms', '80 us' or '80 ns'");
}

TEST_CASE("texts, truth values and choices") {
  const auto read_bool = [](MapReader& reader) {
    bool value = false;
    reader.required("on", value);
  };
  CHECK(complaints("on: true", read_bool).empty());
  CHECK_THAT(complaints("on: yes", read_bool), ContainsSubstring("'yes' is neither true nor false"));
  const auto read_choice = [](MapReader& reader) {
    Phase phase = Phase::decode;
    reader.required("phase", phase, Choices<Phase>{{"prefill", Phase::prefill}, {"decode", Phase::decode}});
  };
  CHECK(complaints("phase: prefill", read_choice).empty());
  CHECK_THAT(complaints("phase: prefil", read_choice), ContainsSubstring("did you mean 'prefill'?"));
  CHECK_THAT(complaints("phase: both", read_choice), ContainsSubstring("use one of prefill, decode"));
  CHECK_THAT(complaints("phase: [1]", read_choice), ContainsSubstring("must be a word"));
}

TEST_CASE("syntax that hides meaning is refused") {
  const auto nothing = [](MapReader&) {};
  CHECK_THAT(complaints("a: &x 1\nb: *x\n", nothing), ContainsSubstring("f.yaml:1: anchors and aliases are not used"));
  CHECK_THAT(complaints("a: !!int 1\n", nothing), ContainsSubstring("tags such as"));
  CHECK_THAT(complaints("a: [1, 2\n", nothing), ContainsSubstring("f.yaml:2: not valid YAML"));
  CHECK_THAT(complaints("a: 1\n---\nb: 2\n", nothing), ContainsSubstring("more than one document"));
  CHECK_THAT(complaints("[a]: 1\n", nothing), ContainsSubstring("is a bracket not closed"));
  CHECK_THAT(complaints(std::string(100, '[') + std::string(100, ']'), nothing),
             ContainsSubstring("nested deeper than 32"));
  CHECK_THAT(complaints(std::string("a: \x04") + "b", nothing), ContainsSubstring("not a text file"));
  CHECK(complaints("a: 1\nb: caf\xe9\n", nothing) == "f.yaml:2: is not UTF-8 (byte 233); save it as UTF-8");
  CHECK_THAT(complaints(std::string(2 << 20, 'a'), nothing), ContainsSubstring("larger than 1 MiB"));
  CHECK_THAT(complaints("", nothing), ContainsSubstring("is empty"));
  CHECK_THAT(complaints("- 1\n", nothing), ContainsSubstring("must be a map"));
}

TEST_CASE("nesting of a million brackets is refused quickly") {
  const auto nothing = [](MapReader&) {};
  CHECK_THAT(complaints(std::string(1 << 20, '['), nothing), ContainsSubstring("is a bracket not closed"));
  const std::string half(1 << 19, '[');
  CHECK_THAT(complaints(half + std::string(1 << 19, ']'), nothing), ContainsSubstring("nested deeper"));
  std::string deep;
  for (int level = 0; level < 1000; ++level) deep += std::string(static_cast<std::size_t>(level), ' ') + "a:\n";
  CHECK_THAT(complaints(deep, nothing), ContainsSubstring("nested deeper"));
}

TEST_CASE("the first 20 problems are shown, in the order of the file, and the others counted") {
  ProblemList problems("f.csv");
  for (int line = 3'000; line > 0; --line) problems.add({line, 0}, "", "is wrong");
  std::string expected;
  for (int line = 1; line <= 20; ++line) expected += "f.csv:" + std::to_string(line) + ": is wrong\n";
  CHECK_THROWS_WITH(problems.throw_if_any(), expected + "and 2,980 more problems");
  ProblemList both("f.csv");
  both.add({7, 0}, "", "is wrong");  // the same as one of those that are shown
  both.add(problems);
  CHECK_THROWS_WITH(both.throw_if_any(), expected + "and 2,980 more problems");
  both.clear();
  CHECK(both.empty());
  CHECK_NOTHROW(both.throw_if_any());
}

TEST_CASE("a file of nothing but problems is not read to its end") {
  ProblemList problems("f.yaml");
  int added = 0;
  const auto add_many = [&] {
    for (; added < 1'000'000; ++added) problems.add(Place{1 + added, 1}, "", "is wrong");
  };
  CHECK_THROWS_WITH(add_many(), ContainsSubstring("and 100,000 or more problems"));
  CHECK(added == 100'019);
}

TEST_CASE("a long value or key is shown in part") {
  const std::string key(1000, 'k');
  const std::string reported = complaints(key + ": " + std::string(1000, 'v'), [&key](MapReader& reader) {
    int value = 0;
    reader.optional(key, value);
  });
  CHECK_THAT(reported, ContainsSubstring("'" + std::string(200, 'v') + "...' is not a whole number"));
  CHECK_THAT(complaints(std::string(1000, 'k') + ": 1", [](MapReader&) {}),
             ContainsSubstring(": " + std::string(200, 'k') + "...: unknown key"));
}

TEST_CASE("an escape of YAML that stands for no text is refused") {
  CHECK_THROWS_WITH(parse_yaml("f.yaml", "a: 1\nb: \"\\N\""), ContainsSubstring("f.yaml:2: an escape such as \\N"));
  CHECK(parse_yaml("f.yaml", "b: \"\\x85\"").children[0].text == "\u0085");
}

TEST_CASE("JSON's scalars are what they were written as") {
  const auto complaint = [](const std::string& value, auto target) {
    const Node node = parse_json("t.jsonl", 7, R"({"key": )" + value + "}");
    ProblemList problems("t.jsonl");
    MapReader(&node, "", problems).required("key", target);
    try {
      problems.throw_if_any();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(complaint("5", 0).empty());
  CHECK(complaint("5", 0.0).empty());
  CHECK(complaint("true", false).empty());
  CHECK(complaint("\"5\"", std::string()).empty());
  CHECK(complaint("\"f16\"", Dtype::f32).empty());
  CHECK(complaint("\"5\"", 0) == "t.jsonl:7: key: '5' is a text; write a whole number");
  CHECK(complaint("\"5\"", 0.0) == "t.jsonl:7: key: '5' is a text; write a number");
  CHECK(complaint("\"true\"", false) == "t.jsonl:7: key: 'true' is a text; write true or false");
  CHECK(complaint("5", std::string()) == "t.jsonl:7: key: is 5; write a text");
  CHECK(complaint("true", 0) == "t.jsonl:7: key: is true; write a whole number");
}

TEST_CASE("JSON gives the same tree, with the line of its text") {
  const Node node = parse_json("t.jsonl", 7, R"({"a": [1, -2.50, true, null, "x\ny"], "b": {}})");
  REQUIRE(node.children.size() == 2);
  CHECK(node.children[1].key == "b");
  const Node& list = node.children[0];
  REQUIRE(list.children.size() == 5);
  CHECK(list.children[1].text == "-2.50");
  CHECK(list.children[3].kind == NodeKind::null);
  CHECK(list.children[4].text == "x\ny");
  CHECK(list.place.line == 7);
  CHECK_THROWS_WITH(parse_json("t.jsonl", 7, "{\"a\": }"), ContainsSubstring("t.jsonl:7:7: is not valid JSON ("));
  CHECK_THROWS_WITH(parse_json("t.jsonl", 7, std::string(100000, '[')), ContainsSubstring("nested deeper"));
}

}  // namespace
}  // namespace dculab::config
