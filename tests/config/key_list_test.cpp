// A section's list of keys: what it reads, what it refuses, and what it says of itself.
#include "config/key_description.hpp"

#include <algorithm>
#include <string>

#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

enum class Colour : std::uint8_t { red, green };
constexpr auto kColours = std::to_array<Choice<Colour>>({{"red", Colour::red}, {"green", Colour::green}});

struct Lid {
  Seconds delay{2e-3};
};

struct Box {
  int width = 3;
  std::optional<double> share;
  Colour colour = Colour::green;
  std::optional<Lid> lid;
  std::string label;
};

struct LidKeys {
  using Target = Lid;
  static constexpr auto keys = std::tuple(value("delay", &Lid::delay, "until it opens", {.bounds = between(0, 1)}));
};

void read_label(MapReader& reader, const Node& node, Box& box) {
  if (node.kind == NodeKind::scalar) reader.read(node, box.label);
}

struct BoxKeys {
  using Target = Box;
  static constexpr auto keys = std::tuple(
      value("width", &Box::width, "from left to right", {.bounds = between(1, 8), .unit = "cm"}),
      value("share", &Box::share, "of the whole", {.bounds = fraction(), .unit = unit::share, .absent = "all"}),
      word("colour", &Box::colour, kColours, "outside"), section<LidKeys>("lid", &Box::lid, "above"),
      shaped("label", read_label, {.is_text = true, .words = one_of("none"), .may_be_list = true}, "what it says",
             {.necessity = Necessity::required}));
  static void check(MapReader& reader, Box& box) {
    if (box.colour == Colour::red && box.lid) reader.complain(*reader.node(), "box: a red one has no lid");
  }
};

Box read_box(const std::string& yaml) {
  const Node document = parse_yaml("box.yaml", yaml);
  ProblemList problems("box.yaml");
  Box box;
  read_section<BoxKeys>(MapReader(&document, "", problems), box);
  problems.throw_if_any();
  return box;
}

const FileKey& described(const std::vector<FileKey>& keys, const std::string& key) {
  return *std::ranges::find(keys, key, &FileKey::key);
}

TEST_CASE("a section is read by its list") {
  const Box box = read_box("{width: 5, share: 0.5, colour: red, label: tools}");
  CHECK(box.width == 5);
  CHECK(box.share == 0.5);
  CHECK(box.colour == Colour::red);
  CHECK(box.label == "tools");
  CHECK_FALSE(box.lid);
  CHECK(read_box("{label: a, lid: {delay: 5 ms}}").lid->delay == Seconds(5e-3));
  CHECK(read_box("{label: a, lid: {}}").lid->delay == Seconds(2e-3));
}

TEST_CASE("a list refuses what it does not have, and what its keys may not be") {
  CHECK_THROWS_WITH(read_box("{label: a, with: 3}"), ContainsSubstring("did you mean 'width'?"));
  CHECK_THROWS_WITH(read_box("{label: a, width: 9}"), ContainsSubstring("must be at least 1 and at most 8"));
  CHECK_THROWS_WITH(read_box("{label: a, colour: blue}"),
                    ContainsSubstring("use one of green, red") || ContainsSubstring("use one of red, green"));
  CHECK_THROWS_WITH(read_box("{label: a, lid: {delay: 2}}"), ContainsSubstring("lid.delay"));
  CHECK_THROWS_WITH(read_box("{width: 3}"), ContainsSubstring("label: missing; add it"));
  CHECK_THROWS_WITH(read_box("{label: a, colour: red, lid: {}}"), ContainsSubstring("a red one has no lid"));
}

TEST_CASE("a list says what its keys may be and what holds without them") {
  const std::vector<FileKey> keys = keys_of<BoxKeys>();
  REQUIRE(keys.size() == 5);
  const FileKey& width = described(keys, "width");
  CHECK(width.standard == "3");
  CHECK(width.values.front().kind == ValueKind::whole);
  CHECK(width.values.front().bounds == between(1, 8));
  CHECK(width.values.front().unit == "cm");
  CHECK(described(keys, "share").absent == "all");
  CHECK(described(keys, "share").standard.empty());
  CHECK(described(keys, "colour").standard == "green");
  CHECK(described(keys, "colour").values.front().words == std::vector<std::string>{"red", "green"});
  const FileKey& delay = described(described(keys, "lid").values.front().keys, "delay");
  CHECK(delay.standard == "2 ms");
  CHECK(delay.values.front().kind == ValueKind::quantity);
  CHECK(delay.values.front().unit == "s");
  const FileKey& label = described(keys, "label");
  CHECK(label.is_required);
  REQUIRE(label.values.size() == 3);
  CHECK(label.values.back().kind == ValueKind::list);
}

TEST_CASE("one key of a list is read alone") {
  const Node document = parse_yaml("box.yaml", "{width: 5, colour: red, label: a}");
  ProblemList problems("box.yaml");
  MapReader reader(&document, "", problems);
  Box box;
  read_key<BoxKeys>(reader, "width", box);
  CHECK(problems.empty());
  CHECK(box.width == 5);
  CHECK(box.colour == Colour::green);
  CHECK(names_of<BoxKeys>() == std::vector<std::string_view>{"width", "share", "colour", "lid", "label"});
}

}  // namespace
}  // namespace dculab::config
