// Every file in tests/bad/yaml begins with "# expect: <message>" and must give that message. Its name says what it is
// read as: machine_*.yaml or scenario_*.yaml.
#include <filesystem>
#include <string>

#include "config/machine_file.hpp"
#include "config/scenario_file.hpp"
#include "core/error.hpp"
#include "fields/node.hpp"
#include "files/input.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

namespace fs = std::filesystem;

std::string refusal_of_file(const fs::path& file) {
  try {
    if (file.filename().string().starts_with("machine_"))
      static_cast<void>(read_machine_file(file));
    else
      static_cast<void>(read_scenario_file(file));
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST_CASE("every bad file gives the message it names") {
  std::size_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(DCULAB_SOURCE_DIR "/tests/bad/yaml")) {
    INFO(entry.path().string());
    const std::string text = files::read_text(entry.path(), 1 << 20);
    const std::string mark = "# expect: ";
    REQUIRE(text.starts_with(mark));
    const std::string message = text.substr(mark.size(), text.find('\n') - mark.size());
    const std::string refused = refusal_of_file(entry.path());
    CHECK_THAT(refused, ContainsSubstring(message));
    CHECK_THAT(refused, ContainsSubstring(entry.path().string()));
    ++count;
  }
  CHECK(count >= 20);
}

}  // namespace
}  // namespace dculab::config
