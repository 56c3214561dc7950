// A machine file or, when the first byte is odd, a scenario: what is accepted survives being written or swept.
#include <cstdint>
#include <string>

#include "config/machine_file.hpp"
#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "fields/json_text.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

void read_as_machine(const std::string& text) {
  const std::string yaml = config::machine_yaml(config::read_machine("fuzz", text));
  require(config::machine_yaml(read_back([&] { return config::read_machine("again", yaml); })) == yaml,
          "a machine is read back as written");
}

void read_as_scenario(const std::string& text) {
  const Node document = config::parse_yaml("fuzz", text);
  const std::string json = json_text(document);
  require(json_text(read_back([&] { return parse_json("again", 1, json); })) == json, "a document survives a journal");
  const config::Scenario scenario = config::read_scenario("fuzz", document);
  const std::uint64_t points = config::num_points(scenario.sweep);
  require(points > 100 || config::sweep_points(scenario).size() == points, "a sweep has its points");
}

}  // namespace

void read_machine_or_scenario(std::string_view input) {
  if (input.empty()) return;
  const std::string text(input.substr(1));
  if (static_cast<unsigned char>(input[0]) % 2 == 0)
    read_as_machine(text);
  else
    read_as_scenario(text);
}

}  // namespace dculab::fuzz
