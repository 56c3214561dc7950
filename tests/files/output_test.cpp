// Files and folders appear whole or not at all, and leave other files as they are.
#include "files/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "files/temporary_name.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::files {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

[[nodiscard]] mode_t rights(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

// The number of a process that has ended.
[[nodiscard]] std::string ended_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return std::to_string(child);
}

// The temporary name of `target` with `process` in the place of this one.
[[nodiscard]] std::string name_of(const std::string& target, const std::string& process) {
  std::string name = new_temporary_name(target);
  const std::string own = ".part-" + std::to_string(::getpid());
  return name.replace(name.find(own), own.size(), ".part-" + process);
}

TEST_CASE("a file is written whole and replaced whole") {
  const TemporaryFolder folder;
  const std::string file = folder.path("out.json");
  write_file_atomically(file, "one");
  CHECK(folder.read("out.json") == "one");
  write_file_atomically(file, std::string(300'000, 'x'));
  CHECK(folder.read("out.json") == std::string(300'000, 'x'));
  CHECK(folder.names() == Names{"out.json"});
}

TEST_CASE("a file grows beside its place, and is told of to who would write it too") {
  const TemporaryFolder folder;
  const std::string file = folder.write("points.csv", "old");
  {
    GrowingFile growing(file);
    growing.write("one,");
    CHECK_THROWS_WITH(GrowingFile(file), ContainsSubstring("another program is writing it") &&
                                             ContainsSubstring("points.csv.part-" + std::to_string(::getpid())));
    GrowingFile other(folder.path("points.csv2"));  // whose name begins alike
    growing.write("two");
    CHECK(folder.read("points.csv") == "old");
    growing.keep();
  }
  CHECK(folder.read("points.csv") == "one,two");
  GrowingFile(file).write("dropped");
  CHECK(folder.read("points.csv") == "one,two");
  CHECK(folder.names() == Names{"points.csv"});
}

TEST_CASE("programs that write one file each write it whole") {
  const TemporaryFolder folder;
  const std::string file = folder.path("out.json");
  const auto text = [](char letter) { return std::string(100'000, letter); };
  std::vector<std::thread> writers;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([&, letter] {
      for (int time = 0; time < 10; ++time) write_file_atomically(file, text(letter));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string left = folder.read("out.json");
  CHECK(left == text(left.at(0)));
  CHECK(folder.names() == Names{"out.json"});
}

TEST_CASE("a failure leaves nothing behind") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(write_file_atomically(folder.path("missing/out.json"), "x"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(write_file_atomically(folder.path(), "x"), ContainsSubstring("is a folder"));
  fs::create_symlink("loop", folder.path("loop"));
  CHECK_THROWS_AS(write_file_atomically(folder.path("loop"), "x"), InputError);
  CHECK_THROWS_AS(write_file_atomically(folder.path(std::string(300, 'x')), "x"), InputError);
  CHECK_THROWS_WITH(write_file_atomically("/dev/full", "x"), ContainsSubstring("cannot be written (No space left"));
  CHECK_THROWS_WITH(write_file_atomically("/dev/fd/999", "x"), ContainsSubstring("Bad file descriptor"));
  CHECK(folder.names() == Names{"loop"});
}

TEST_CASE("a name as long as a folder takes is written") {
  const TemporaryFolder folder;
  const std::string name(255, 'x');
  write_file_atomically(folder.path(name), "whole");
  CHECK(folder.names() == Names{name});
}

TEST_CASE("links stay, and the files that they name are written, there or not") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("elsewhere"));
  folder.write("elsewhere/target", "old");
  fs::create_symlink("elsewhere/target", folder.path("link"));
  fs::create_symlink("link", folder.path("link-to-link"));
  fs::create_symlink("elsewhere/new", folder.path("dangling"));
  fs::create_symlink("nowhere/new", folder.path("hopeless"));
  write_file_atomically(folder.path("link-to-link"), "new");
  write_file_atomically(folder.path("dangling"), "made");
  CHECK_THROWS_AS(write_file_atomically(folder.path("hopeless"), "x"), InputError);
  for (const char* link : {"link", "link-to-link", "dangling", "hopeless"}) CHECK(fs::is_symlink(folder.path(link)));
  CHECK(folder.read("elsewhere/target") == "new");
  CHECK(folder.read("elsewhere/new") == "made");
}

TEST_CASE("a new file has the rights of the old one") {
  const TemporaryFolder folder;
  for (const mode_t mode : {0600U, 0640U, 0644U, 0666U}) {
    const std::string file = folder.path("out.json");
    folder.write("out.json", "old");
    REQUIRE(::chmod(file.c_str(), mode) == 0);
    write_file_atomically(file, "new");
    CHECK(rights(file) == mode);
    CHECK(folder.read("out.json") == "new");
    fs::remove(file);
  }
  const mode_t mask = ::umask(027);
  write_file_atomically(folder.path("first"), "x");
  ::umask(mask);
  CHECK(rights(folder.path("first")) == 0640);
}

TEST_CASE("a file that may not be written is not replaced") {
  const TemporaryFolder folder;
  const std::string file = folder.path("out.json");
  folder.write("out.json", "old");
  REQUIRE(::chmod(file.c_str(), 0444) == 0);
  REQUIRE(::chmod(folder.path("").c_str(), 0777) == 0);
  const uid_t user = ::geteuid();
  constexpr uid_t kNobody = 65534;
  if (user == 0) REQUIRE(::seteuid(kNobody) == 0);  // root may write everything
  CHECK_THROWS_WITH(write_file_atomically(file, "new"), ContainsSubstring("out.json: cannot be written (Permission"));
  if (user == 0) REQUIRE(::seteuid(user) == 0);
  CHECK(folder.read("out.json") == "old");
}

TEST_CASE("links and files that are named much like temporary files are left alone") {
  const TemporaryFolder folder;
  const std::string file = folder.path("out.json");
  folder.write("victim", "mine");
  fs::create_symlink("victim", file + ".part");
  fs::create_hard_link(folder.path("victim"), file + ".part-" + std::to_string(::getpid()));
  fs::create_symlink("victim", file + ".part-1-00000000-" + std::string(24, '0'));
  const Names others{file + ".part-01-00000000-" + std::string(24, '0'),
                     file + ".part-1-0000000g-" + std::string(24, '0'),
                     file + ".part-1-00000000-" + std::string(23, '0'), file + ".part-x"};
  for (const std::string& other : others) folder.write(fs::path(other).filename().string(), "mine");
  const std::size_t before = folder.names().size();
  write_file_atomically(file, "new");
  CHECK(folder.names().size() == before + 1);
  CHECK(folder.read("victim") == "mine");
  for (const std::string& other : others) CHECK(folder.read(fs::path(other).filename().string()) == "mine");
  CHECK_NOTHROW(GrowingFile(file));  // a link is no other program's half-written file
}

TEST_CASE("the next program removes what one that was killed left, and nothing of one that runs") {
  const TemporaryFolder folder;
  const std::string file = folder.path("out.json"), ended = ended_process();
  const auto name = [](const std::string& path) { return fs::path(path).filename().string(); };
  const std::string running = name(name_of(file, std::to_string(::getppid())));
  const std::string others = name(name_of(folder.path("other.json"), ended));
  folder.write(name(name_of(file, ended)), "half");
  fs::create_directory(name_of(file, ended));  // of a model
  folder.write(running, "still growing");
  folder.write(others, "half");
  std::string again = name(name_of(file, std::to_string(::getpid())));  // of an earlier process with this one's number
  again.back() = again.back() == '0' ? '1' : '0';
  folder.write(again, "half");
  write_file_atomically(file, "new");
  Names left{"out.json", running, others};
  std::ranges::sort(left);
  CHECK(folder.names() == left);
  CHECK_THROWS_WITH(GrowingFile(file), ContainsSubstring("another program is writing it"));
}

TEST_CASE("what another machine left goes after a day") {
  const TemporaryFolder folder;
  const std::string file = folder.path("out.json");
  std::string foreign = name_of(file, ended_process());
  const std::size_t machine = foreign.rfind('-') - 1;
  foreign[machine] = foreign[machine] == '0' ? '1' : '0';
  folder.write(fs::path(foreign).filename().string(), "half");
  write_file_atomically(file, "new");
  CHECK(fs::exists(foreign));
  fs::last_write_time(foreign, fs::file_time_type::clock::now() - std::chrono::hours(25));
  write_file_atomically(file, "new");
  CHECK(folder.names() == Names{"out.json"});
}

TEST_CASE("a folder is made whole or not at all, and by one program at a time") {
  const TemporaryFolder folder;
  {
    NewFolder made(folder.path("model"));
    write_file_atomically(made.path() + "/config.json", "{}");
    CHECK_THROWS_WITH(NewFolder(folder.path("model")), ContainsSubstring("another program is writing it"));
    CHECK_FALSE(fs::exists(folder.path("model")));
    made.keep();
  }
  CHECK(folder.read("model/config.json") == "{}");
  {
    NewFolder dropped(folder.path("other"));
    write_file_atomically(dropped.path() + "/config.json", "{}");
  }
  NewFolder late(folder.path("model"));
  CHECK_THROWS_WITH(late.keep(), ContainsSubstring("Directory not empty"));
}

TEST_CASE("a pipe that does not block gets everything") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_NONBLOCK) == 0);
  const std::string text(1 << 20, 'x');  // more than a pipe holds
  std::thread writer([&] {
    write_all(ends[1], text);
    ::close(ends[1]);
  });
  std::string received;
  std::array<char, 4096> piece{};
  for (ssize_t got = -1; got != 0;) {
    got = ::read(ends[0], piece.data(), piece.size());
    if (got > 0) received.append(piece.data(), static_cast<std::size_t>(got));
  }
  writer.join();
  ::close(ends[0]);
  CHECK(received == text);
}

TEST_CASE("a descriptor that the shell handed over is written where it stands") {
  const TemporaryFolder folder;
  const Descriptor file(::open(folder.path("out").c_str(), O_WRONLY | O_CREAT, 0600));
  write_all(file.number(), "before,");
  write_file_atomically("/dev/fd/" + std::to_string(file.number()), "between,");
  write_all(file.number(), "after");
  CHECK(folder.read("out") == "before,between,after");
}

}  // namespace
}  // namespace dculab::files
