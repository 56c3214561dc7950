// What strict JSON is here, for every file that is read: the tree, the line of a mistake, and what is refused before it
// costs memory.
#include "fields/json_text.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

namespace dculab {
namespace {

using Catch::Matchers::StartsWith;

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_json("f.json", 1, text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// `text` in pieces of `size` bytes.
NextPiece pieces_of(std::string_view text, std::size_t size) {
  return [text, size]() mutable {
    const std::string_view piece = text.substr(0, size);
    text.remove_prefix(piece.size());
    return piece;
  };
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

// {"k0":0,"k1":0,...}
std::string object_of(int members, const std::string& last = "") {
  std::string text = "{";
  for (int index = 0; index < members; ++index) text += (index > 0 ? ",\"k" : "\"k") + std::to_string(index) + "\":0";
  return text + last + "}";
}

// What the items at `place` are, as JSON texts; the rest of the document is the last.
std::vector<std::string> items_of(const std::string& text, const ItemPlace& place, std::size_t piece = 3) {
  std::vector<std::string> items;
  const Node rest = read_json_items("f.json", pieces_of(text, piece), place,
                                    [&items](const Node& item) { items.push_back(item.key + json_text(item)); });
  items.push_back(json_text(rest));
  return items;
}

}  // namespace

TEST_CASE("a scalar knows what it was written as") {
  const Node node = parse_json("f.json", 1, R"([-3, 7, 18446744073709551615, 1.50, 1e2, "7", true, null])");
  const std::vector<Node>& values = node.children;
  REQUIRE(values.size() == 8);
  for (const int integer : {0, 1, 2}) CHECK(values[static_cast<std::size_t>(integer)].is(ScalarType::integer));
  CHECK(values[2].text == "18446744073709551615");
  CHECK(values[3].is(ScalarType::real));
  CHECK(values[3].text == "1.50");
  CHECK(number_of(values[3]) == 1.5);
  CHECK(number_of(values[4]) == 100);
  CHECK(values[5].is(ScalarType::text));
  CHECK(values[6].is(ScalarType::flag));
  CHECK(values[7].kind == NodeKind::null);
  CHECK(number_of(parse_json("f.json", 1, "1e-400")) == 0);
}

TEST_CASE("places are lines, and a mistake has its column too") {
  const Node node = parse_json("f.json", 7, "{\"a\": 1,\n\n \"b\": [2,\n3\n]}");
  CHECK(node.place.line == 7);
  CHECK(node.children[1].key_place.line == 9);
  CHECK(node.children[1].children[1].place.line == 10);
  CHECK_THAT(refusal("{\"a\": 1,\n  \"b\" 2}"), StartsWith("f.json:2:7: is not valid JSON (syntax error"));
  CHECK_THAT(refusal("[1,\n"), StartsWith("f.json:2:1: is not valid JSON ("));
  CHECK_THAT(refusal("[1] 2"), StartsWith("f.json:1:5: is not valid JSON ("));
  CHECK(refusal("[1e999]") == "f.json:1:6: is not valid JSON (number overflow parsing '1e999')");
}

TEST_CASE("a mistake in a long token is told in few words") {
  const std::string reported = refusal("[\"" + std::string(1 << 20, 'a'));
  CHECK_THAT(reported, StartsWith("f.json:1:1048579: is not valid JSON ("));
  CHECK(reported.size() < 300);
}

TEST_CASE("nesting is refused beyond 64 levels, however deep") {
  CHECK(refusal(nested(64)) == "no error");
  CHECK(refusal(nested(65)) == "f.json:1: nested deeper than 64 levels; flatten the file");
  CHECK_THAT(refusal(nested(1'000'000)), ContainsSubstring("nested deeper than 64 levels"));
  std::string objects;
  for (int level = 0; level < 100'000; ++level) objects += "{\"a\":";
  CHECK_THAT(refusal(objects), ContainsSubstring("nested deeper than 64 levels"));
}

TEST_CASE("a key that stands twice is refused, in small objects and in large ones") {
  CHECK(refusal(R"({"a": 1, "b": 2,)"
                "\n"
                R"("a": 3})") == "f.json:2: key 'a' stands twice in one JSON object");
  CHECK(refusal(R"([{"a": {"x": 1}}, {"a": {"x": 1}}])") == "no error");
  CHECK_THAT(refusal(R"([{"a": {"x": 1, "x": 1}}])"), ContainsSubstring("key 'x' stands twice"));
  CHECK(refusal(object_of(100'000)) == "no error");
  CHECK_THAT(refusal(object_of(100'000, ",\"k50000\":1")), ContainsSubstring("key 'k50000' stands twice"));
}

TEST_CASE("a text in pieces is the same document wherever it is cut") {
  const std::string text = R"({"a": [1, -2.5, "caf\u00e9 é"], "b": {"c": null}})";
  const std::string whole = json_text(parse_json("f.json", 1, text));
  for (std::size_t size = 1; size <= text.size(); ++size) {
    const Node node = read_json_items("f.json", pieces_of(text, size), {.member = "none"}, [](const Node&) {});
    CHECK(json_text(node) == whole);
  }
}

TEST_CASE("items are given one by one and left out of the rest") {
  using Texts = std::vector<std::string>;
  CHECK(items_of("[1, [2], {\"a\": 3}]", {}) == Texts{"1", "[2]", R"({"a":3})", "[]"});
  CHECK(items_of(R"({"a": 1, "b": [2]})", {.kind = NodeKind::map}) == Texts{"a1", "b[2]", "{}"});
  CHECK(items_of(R"({"x": [0], "events": [1, 2], "y": {"events": [3]}})", {.member = "events"}) ==
        Texts{"1", "2", R"({"x":[0],"events":[],"y":{"events":[3]}})"});
  // Not where they should be: nothing is given, and the reader sees what there is.
  CHECK(items_of(R"({"a": 1})", {}) == Texts{R"({"a":1})"});
  CHECK(items_of(R"({"events": {"a": 1}})", {.member = "events"}) == Texts{R"({"events":{"a":1}})"});
  CHECK_THROWS_WITH(items_of(R"({"a": 1, "b": 2, "a": 3})", {.kind = NodeKind::map}),
                    ContainsSubstring("key 'a' stands twice"));
}

TEST_CASE("more items than a tree may have values pass by", "[once]") {
  constexpr std::size_t kItems = 5'000'000;
  std::size_t left = kItems;
  const NextPiece next_piece = [&left, begun = false]() mutable -> std::string_view {
    if (!std::exchange(begun, true)) return "[[]";
    if (left == 0) return {};
    return --left == 0 ? "]" : ",[]";
  };
  std::size_t seen = 0;
  static_cast<void>(read_json_items("f.json", next_piece, {}, [&seen](const Node&) { ++seen; }));
  CHECK(seen == kItems);
}

TEST_CASE("values beside the items count, and items are given once", "[once]") {
  std::string beside = R"({"a": [0)";
  for (int value = 0; value < 3'000'000; ++value) beside += ",0";
  const std::string more = beside.substr(6) + "]";
  CHECK_THROWS_WITH(items_of(beside + R"(], "events": [1], "b": )" + more + "}", {.member = "events"}),
                    ContainsSubstring("more than 4,000,000 values"));
  CHECK_THROWS_WITH(items_of(R"({"events": [1], "events": [2]})", {.member = "events"}),
                    ContainsSubstring("key 'events' stands twice"));
}

TEST_CASE("a tree of more than four million values is refused", "[once]") {
  std::string text = "[0";
  for (int value = 0; value < 4'000'000; ++value) text += ",0";
  CHECK_THAT(refusal(text), ContainsSubstring("more than 4,000,000 values"));
}

TEST_CASE("a document is written as nlohmann writes it, on one line and indented") {
  using Ordered = nlohmann::ordered_json;
  for (const char* text :
       {"{}", "[]", "null", "7", R"("a")", R"({"b":[],"a":{},"c":[[1,[{}]],{"d":{"e":[null,false]}}]})",
        R"(["\u0000\u001f\u007f\u0080\u2028\ud83d\ude00/\\\"\b\f\n\r\t", {"\"k\n\u00e9": 1}])",
        "[0.0, -0.0, 1.0, 100.0, 1e22, 1e-7, 1.7976931348623157e308, 5e-324, -9223372036854775808, 0.1]"})
    for (const int indent : {-1, 0, 2, 4}) {
      INFO(text << " indented by " << indent);
      CHECK(json_text(parse_json("f.json", 1, text), indent) == Ordered::parse(text).dump(indent));
    }
  Node twice = parse_json("f.json", 1, R"({"a": "1", "b": "x", "c": "2"})");
  twice.children[1].key = "\xc3";
  twice.children[1].text = "x\xff";
  twice.children[2].key = "a";
  CHECK(json_text(twice) == "{\"a\":\"2\",\"\xef\xbf\xbd\":\"x\xef\xbf\xbd\"}");
}

TEST_CASE("objects of many keys are written in time that grows with them") {
  const std::string text = json_text(parse_json("f.json", 1, object_of(200'000)));
  CHECK(json_text(parse_json("f.json", 1, text)) == text);
}

TEST_CASE("what is written is what was read") {
  for (const char* text : {"{}", "[]", "null", R"({"b":1,"a":[-2,18446744073709551615,0.1,1e-05,true,"x\n\u0001é"]})"})
    CHECK(json_text(parse_json("f.json", 1, text)) == text);
  Node node = parse_json("f.json", 1, R"({"a": 1, "b": 2})");
  set_member(node, "a", parse_json("f.json", 1, "[3]"));
  set_member(node, "c", parse_json("f.json", 1, "4"));
  CHECK(json_text(node) == R"({"a":[3],"b":2,"c":4})");
}

TEST_CASE("JSON as YAML would have it: numbers and texts are words, at no place") {
  const Node words = as_words(parse_json("file", 7, R"({"a": 1, "b": ["x", null, true]})"));
  REQUIRE(words.kind == NodeKind::map);
  CHECK(words.place.line == 0);
  const Node* number = words.find("a");
  const Node* list = words.find("b");
  REQUIRE(number != nullptr);
  REQUIRE(list != nullptr);
  CHECK(number->is(ScalarType::word));
  CHECK(number->text == "1");
  CHECK(number->key_place.line == 0);
  REQUIRE(list->children.size() == 3);
  CHECK(list->children[0].is(ScalarType::word));
  CHECK(list->children[1].kind == NodeKind::null);
  CHECK(list->children[2].text == "true");
}

}  // namespace dculab
