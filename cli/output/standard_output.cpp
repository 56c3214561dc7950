#include "cli/output/standard_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "fields/printable_text.hpp"

namespace dculab::cli {
namespace {

[[noreturn]] void refuse() {
  throw InputError(std::string("standard output cannot be written (") + std::strerror(errno) + ")");
}

// Standard output may be shared with a program that has made it non-blocking.
void wait_until_writable() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  ::poll(&output, 1, -1);
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (errno == EAGAIN)
      wait_until_writable();
    else if (errno != EINTR)
      refuse();
  }
}

}  // namespace

void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO;) {
    descriptor = ::open("/", O_PATH);  // the lowest number that is free
    if (descriptor > STDERR_FILENO) ::close(descriptor);
    if (descriptor < 0) return;
  }
}

void print(std::string_view text) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (is_terminal)
    write_all(printable(text));
  else
    write_all(text);
}

void check_standard_output() {
  const int other = ::dup(STDOUT_FILENO);
  if (other >= 0 && ::close(other) != 0) refuse();
}

}  // namespace dculab::cli
