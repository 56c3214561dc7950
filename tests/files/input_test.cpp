// Files that somebody else made: read whole, within a limit, and never waited for.
#include "files/input.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/error.hpp"
#include "files/output.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::files {
namespace {

using test::TemporaryFolder;

TEST_CASE("a file is read whole up to its limit") {
  const TemporaryFolder folder;
  const std::string text = std::string(200'000, 'x') + '\0' + "end";
  const std::string file = folder.write("text", text);
  CHECK(read_text(file, text.size()) == text);
  CHECK_THROWS_WITH(read_text(file, text.size() - 1), ContainsSubstring("is larger than 200003 bytes"));
  CHECK(read_text(folder.write("empty", ""), 0).empty());
}

TEST_CASE("a file that tells no size is read to its end") {
  CHECK_THAT(read_text("/proc/self/status", 1 << 20), ContainsSubstring("Name:"));
}

TEST_CASE("what is no file is refused at once, and named") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);  // without a writer: opening it would wait for ever
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{AF_UNIX, {}};
  REQUIRE(folder.path("socket").copy(address.sun_path, sizeof address.sun_path - 1) == folder.path("socket").size());
  REQUIRE(::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  for (const auto& [path, reason] : {std::pair(folder.path(), "is a folder, not a file"),
                                     std::pair(std::filesystem::path(folder.path("fifo")), "is a FIFO, not a file"),
                                     std::pair(std::filesystem::path(folder.path("socket")), "is a socket, not a file"),
                                     std::pair(std::filesystem::path("/dev/zero"), "is a device, not a file"),
                                     std::pair(std::filesystem::path(folder.path("none")), "cannot be opened (No such"),
                                     std::pair(std::filesystem::path(""), "cannot be opened (No such")}) {
    INFO(path);
    CHECK_THROWS_WITH(read_text(path, 100), ContainsSubstring(reason));
    CHECK_THROWS_AS(open_regular(path), InputError);
  }
}

TEST_CASE("a link to a FIFO or a pipe of this program is no way around") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  std::filesystem::create_symlink("fifo", folder.path("link"));
  std::filesystem::create_symlink("/dev/zero", folder.path("zero"));
  CHECK_THROWS_WITH(read_text(folder.path("link"), 100), ContainsSubstring("is a FIFO"));
  CHECK_THROWS_WITH(read_text(folder.path("zero"), 100), ContainsSubstring("is a device"));
}

TEST_CASE("a pipe that the shell hands over is read to its end, within the limit, and gives its text again") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{300'000}}) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const Descriptor read_end(ends[0]);
    std::thread writer([&] {
      const Descriptor write_end(ends[1]);
      const std::string text(size, 'x');
      for (std::size_t done = 0; done < size;) {
        const ssize_t written = ::write(write_end.number(), text.data() + done, size - done);
        if (written <= 0) return;
        done += static_cast<std::size_t>(written);
      }
    });
    const std::string path = "/dev/fd/" + std::to_string(ends[0]);
    CHECK_THROWS_WITH(open_regular(path), ContainsSubstring("is a FIFO"));
    for (int time = 0; time < 2; ++time) CHECK(read_text(path, 1 << 20) == std::string(size, 'x'));
    CHECK(read_text_pieces(path, 1 << 20)() == std::string(size, 'x'));
    writer.join();
  }
}

TEST_CASE("a file that is reserved for an output is not read any more, and one that takes its place is") {
  const TemporaryFolder folder;
  const std::string file = folder.write("machine.yaml", "text");
  std::filesystem::create_hard_link(file, folder.path("hard"));
  CHECK(read_text(file, 100) == "text");
  reserve_for_output(file, "--output");
  reserve_for_output(folder.path("absent"), "--report");
  for (const std::string& name : {file, folder.path("hard")}) {
    CHECK_THROWS_WITH(read_text(name, 100), ContainsSubstring("is read here and written by --output"));
    CHECK_THROWS_AS(read_text(name, 100), ReservedFileError);
    CHECK_THROWS_AS(read_text_pieces(name, 100), ReservedFileError);
  }
  std::filesystem::remove(folder.path("hard"));
  write_file_atomically(file, "new");
  CHECK(read_text(file, 100) == "new");
}

}  // namespace
}  // namespace dculab::files
