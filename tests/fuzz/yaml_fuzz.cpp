// Any bytes as a machine file or, when the first byte is odd, as a scenario file: accepted or refused with an
// InputError, never anything else. What is accepted must survive being written or swept.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/machine_file.hpp"
#include "config/scenario_file.hpp"
#include "core/error.hpp"

namespace {

using namespace dculab;

void read_as_machine(const std::string& text) {
  const std::string yaml = config::machine_yaml(config::read_machine("fuzz", text));
  if (config::machine_yaml(config::read_machine("again", yaml)) != yaml) std::abort();
}

void read_as_scenario(const std::string& text) {
  const config::Scenario scenario = config::read_scenario("fuzz", config::parse_yaml("fuzz", text));
  const std::uint64_t points = config::num_points(scenario.sweep);
  if (points <= 100 && config::sweep_points(scenario).size() != points) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 2 == 0)
      read_as_machine(text);
    else
      read_as_scenario(text);
  } catch (const InputError&) {
  }
  return 0;
}
