// What is left where a program ends because there is no memory.
#include "files/temporary.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <string>

#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace {
thread_local bool is_out_of_memory = false;
}  // namespace

// Not inlined, so that the compiler does not see half of a pair.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = is_out_of_memory ? nullptr : std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// A sanitizer's own would not go with the deletes below.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return std::malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace dculab::files::test {
namespace {

TEST_CASE("what is unfinished is removed without memory") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("elsewhere"));
  folder.write("elsewhere/bystander", "stays");
  for (const TemporaryKind kind : {TemporaryKind::file, TemporaryKind::folder}) {
    std::optional<Temporary> temporary;
    temporary.emplace(folder.path("result"), kind);
    const std::filesystem::path path = temporary->path();
    REQUIRE(std::filesystem::exists(path));
    if (kind == TemporaryKind::folder) {
      std::filesystem::create_directories(path / "inner");
      for (int file = 0; file < 300; ++file)
        std::ofstream(path / "inner" / (std::string(50, 'n') + std::to_string(file)));
      std::filesystem::create_symlink(folder.path("elsewhere"), path / "link");
    }
    is_out_of_memory = true;
    temporary.reset();
    is_out_of_memory = false;
    CHECK_FALSE(std::filesystem::exists(path));
  }
  CHECK(folder.read("elsewhere/bystander") == "stays");
}

}  // namespace
}  // namespace dculab::files::test
