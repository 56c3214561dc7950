// A program that is interrupted undoes what it has begun.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "files/output.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::files {
namespace {

using test::TemporaryFolder;

// In a process of its own: begins an output and a folder, and is ended by `signal`. Returns how it ended.
int interrupted(const TemporaryFolder& folder, int signal, bool ignored) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(signal, ignored ? SIG_IGN : SIG_DFL);  // or Catch would have it
    undo_when_interrupted();
    GrowingFile file(folder.path("points.csv"));
    file.write("half");
    NewFolder made(folder.path("model"));
    write_file_atomically(made.path() + "/config.json", "{}");
    ::kill(::getpid(), signal);
    if (!ignored) ::pause();
    file.keep();
    made.keep();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_CASE("a program that is interrupted leaves nothing unfinished and ends by the same signal") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const TemporaryFolder folder;
    const int status = interrupted(folder, signal, false);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(folder.names().empty());
  }
}

TEST_CASE("a signal that was ignored before the program began stays so") {
  const TemporaryFolder folder;
  CHECK(interrupted(folder, SIGHUP, true) == 0);
  CHECK(folder.names() == std::vector<std::string>{"model", "points.csv"});
}

TEST_CASE("what may have to wait is undone after everything else") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto note = [&folder](const char* text) {
      std::ofstream(folder.path("order"), std::ios::app) << text << ' ';
    };
    const Undo first([&] { note("first"); });
    const Undo second([&] { note("second"); });
    const Undo last([&] { note("last"); }, UndoOrder::after_others);
    undo_unfinished();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  CHECK(folder.read("order") == "second first last ");
}

}  // namespace
}  // namespace dculab::files
