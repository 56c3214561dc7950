#include "config/text_output.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "files/input.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

namespace fs = std::filesystem;

struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("dculab-text-output-" + std::to_string(::getpid()));
  TemporaryFolder() { fs::create_directories(path); }
  ~TemporaryFolder() { fs::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

TEST_CASE("a file is written whole and replaced whole") {
  const TemporaryFolder folder;
  const std::string file = folder.path / "out.json";
  write_file_atomically(file, "one");
  CHECK(files::read_text(file, 100) == "one");
  write_file_atomically(file, std::string(300000, 'x'));
  CHECK(files::read_text(file, 1 << 20) == std::string(300000, 'x'));
  CHECK(folder.count() == 1);
}

TEST_CASE("the next write takes what a killed one left") {
  const TemporaryFolder folder;
  const std::string file = folder.path / "out.json";
  std::ofstream(file + ".part") << "half of an answer that is longer than the next";
  write_file_atomically(file, "whole");
  CHECK(files::read_text(file, 100) == "whole");
  CHECK(folder.count() == 1);
}

TEST_CASE("programs that write one file take turns") {
  const TemporaryFolder folder;
  const std::string file = folder.path / "out.json";
  const auto text = [](char letter) { return std::string(100000, letter); };
  std::vector<std::thread> writers;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([&, letter] {
      for (int time = 0; time < 50; ++time) write_file_atomically(file, text(letter));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string left = files::read_text(file, 1 << 20);
  CHECK(left == text(left.at(0)));
  CHECK(folder.count() == 1);
}

TEST_CASE("a failure leaves nothing behind") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(write_file_atomically(folder.path / "missing" / "out.json", "x"), InputError);
  CHECK_THROWS_WITH(write_file_atomically(folder.path, "x"), ContainsSubstring("is a folder"));
  CHECK(folder.count() == 0);
  CHECK_THROWS_WITH(write_file_atomically("/dev/full", std::string(100000, 'x')),
                    ContainsSubstring("cannot be written"));
}

TEST_CASE("a file grows beside its place, over what a killed program left, and one at a time") {
  const TemporaryFolder folder;
  const std::string file = folder.path / "points.csv";
  write_file_atomically(file, "old");
  write_file_atomically(file + ".part", "half of a row that is longer than the new file");
  {
    GrowingFile growing(file);
    growing.write("one,");
    CHECK_THROWS_WITH(GrowingFile(file), ContainsSubstring("another program is writing it"));
    growing.write("two");
    CHECK(files::read_text(file, 100) == "old");
    growing.keep();
  }
  CHECK(files::read_text(file, 100) == "one,two");
  GrowingFile(file).write("dropped");
  CHECK(files::read_text(file, 100) == "one,two");
  CHECK(folder.count() == 1);
}

TEST_CASE("a link keeps pointing to the file that is replaced") {
  const TemporaryFolder folder;
  write_file_atomically(folder.path / "target", "old");
  fs::create_symlink("target", folder.path / "link");
  write_file_atomically(folder.path / "link", "new");
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(files::read_text(folder.path / "target", 100) == "new");
}

}  // namespace
}  // namespace dculab::config
