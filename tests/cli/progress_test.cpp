// The progress bar on a terminal, here a pseudo-terminal of a process of its own.
#include "cli/progress.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "files/output.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli {
namespace {

using files::Descriptor;
using files::test::TemporaryFolder;

constexpr unsigned kHangs = 60;  // seconds, after which SIGALRM ends a process that nothing else ended
constexpr std::string_view kErasedLine = "\r\033[K";

struct Terminal {
  Descriptor reader{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  Descriptor writer;

  Terminal() {
    REQUIRE(::grantpt(reader.number()) == 0);
    REQUIRE(::unlockpt(reader.number()) == 0);
    writer = Descriptor(::open(::ptsname(reader.number()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(writer.number() >= 0);
  }

  // What the terminal shows until it has shown `text` and emptied the line: the kernel delivers it after the write.
  [[nodiscard]] std::string shown_through(std::string_view text) const {
    std::string shown;
    pollfd arrived{reader.number(), POLLIN, 0};
    const auto is_complete = [&] { return shown.find(text) != std::string::npos && shown.ends_with(kErasedLine); };
    while (!is_complete() && ::poll(&arrived, 1, kHangs * 1000) == 1) {
      std::array<char, 4096> bytes{};
      const ssize_t got = ::read(reader.number(), bytes.data(), bytes.size());
      if (got <= 0) break;
      shown.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return shown;
  }
};

void wait_until_asleep(long thread) {
  const std::string file = "/proc/self/task/" + std::to_string(thread) + "/stat";
  for (std::string text; text.find(") S ") == std::string::npos; std::this_thread::yield()) {
    std::ifstream stat(file);
    std::getline(stat, text);
  }
}

// Writes half a file, draws, and gets `signal` while the bar is on the terminal.
[[noreturn]] void draw_and_be_ended(const Terminal& terminal, const std::string& file, bool is_stopped) {
  ::alarm(kHangs);
  ::signal(SIGTERM, SIG_DFL);  // or Catch would have it
  files::undo_when_interrupted();
  ::dup2(terminal.writer.number(), STDERR_FILENO);
  if (is_stopped) ::tcflow(STDERR_FILENO, TCOOFF);
  ProgressBar bar;
  files::GrowingFile growing(file);
  growing.write("half");
  std::atomic<long> number = 0;
  std::atomic<bool> is_drawn = false;
  std::thread drawing([&] {
    number = ::syscall(SYS_gettid);
    bar.update("working", 0.5);
    is_drawn = true;
    ::pause();
  });
  while (number == 0 || !(is_stopped || is_drawn)) std::this_thread::yield();
  if (is_stopped) wait_until_asleep(number);  // in write()
  ::kill(::getpid(), SIGTERM);
  drawing.join();
  ::_exit(0);
}

TEST_CASE("a program is ended by a signal also while its bar waits for a stopped terminal") {
  for (const bool is_stopped : {false, true}) {
    const TemporaryFolder folder;
    const Terminal terminal;
    const pid_t child = ::fork();
    if (child == 0) draw_and_be_ended(terminal, folder.path("points.csv"), is_stopped);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGTERM);
    CHECK(folder.names().empty());
    if (is_stopped) continue;
    const std::string shown = terminal.shown_through("50 %  working");
    CHECK_THAT(shown, ContainsSubstring("50 %  working"));
    CHECK(shown.ends_with(kErasedLine));
  }
}

TEST_CASE("a label gives the terminal no orders") {
  const Terminal terminal;
  const Descriptor before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  ::dup2(terminal.writer.number(), STDERR_FILENO);
  ProgressBar().update("red \033[31m", 0.1);
  ::dup2(before.number(), STDERR_FILENO);
  CHECK_THAT(terminal.shown_through("red \\x1b[31m"), ContainsSubstring("red \\x1b[31m"));
}

}  // namespace
}  // namespace dculab::cli
