// Every folder of tests/bad/checkpoint is refused with exactly the message it comes with.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

const std::filesystem::path kBadFolder = std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/bad/checkpoint";

// expected_error.txt, with the folder's path filled in.
std::string expected_message(const std::filesystem::path& folder) {
  std::ifstream file(folder / "expected_error.txt");
  std::string message{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string placeholder = "{folder}";
  message.replace(message.find(placeholder), placeholder.size(), folder.string());
  return message.substr(0, message.find('\n'));
}

std::string message_of_loading(const std::filesystem::path& folder, WeightMemory memory) {
  try {
    static_cast<void>(load_weights(folder, memory));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("bad checkpoints are refused with one clear message") {
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kBadFolder)) {
    CHECK(message_of_loading(entry.path(), WeightMemory::huge_pages) == expected_message(entry.path()));
    CHECK(message_of_loading(entry.path(), WeightMemory::mapped) == expected_message(entry.path()));
    ++folders;
  }
  REQUIRE(folders >= 40);
}

TEST_CASE("a folder that is not there is refused") {
  const std::string message = message_of_loading(kBadFolder / "nowhere", WeightMemory::huge_pages);
  REQUIRE_THAT(message, ContainsSubstring("nowhere"));
  REQUIRE_THAT(message, ContainsSubstring("cannot be opened"));
}

}  // namespace dculab::engine
