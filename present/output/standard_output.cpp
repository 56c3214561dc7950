#include "present/output/standard_output.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "files/output.hpp"

namespace dculab::present {
namespace {

[[noreturn]] void refuse(int reason) {
  throw InputError(std::string("standard output cannot be written (") + std::strerror(reason) + ")");
}

[[nodiscard]] bool is_terminal() {
  static const bool is = ::isatty(STDOUT_FILENO) == 1;
  return is;
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
  try {
    files::write_all(STDOUT_FILENO, is_terminal() ? std::string_view(printable(text)) : text);
  } catch (const std::system_error& error) {
    refuse(error.code().value());
  }
}

void check_standard_output() {
  const int other = ::dup(STDOUT_FILENO);
  if (other >= 0 && ::close(other) != 0) refuse(errno);
}

std::optional<std::size_t> terminal_width() {
  if (!is_terminal()) return std::nullopt;
  std::size_t columns = 0;
  if (const char* stated = std::getenv("COLUMNS")) std::from_chars(stated, stated + std::strlen(stated), columns);
  winsize size{};
  if (columns == 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns > 0 ? std::optional(columns) : std::nullopt;
}

}  // namespace dculab::present
