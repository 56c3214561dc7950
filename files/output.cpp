#include "files/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "core/error.hpp"

namespace dculab::files {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the system follows

[[noreturn]] void refuse_to_write(const std::string& path, const std::string& why) {
  throw InputError(path, "cannot be written (" + why + ")");
}

void refuse_if_taken(const Temporary& temporary, const std::string& path) {
  const std::string earlier = temporary.earlier();
  if (!earlier.empty())
    throw InputError(path, "cannot be written (another program is writing it); if none is, remove " + earlier);
}

// Another user's link in a folder that everybody writes to, such as /tmp, is not followed, as Linux itself does not.
[[nodiscard]] bool is_anothers_trap(const fs::path& link) {
  struct stat own {
  }, folder{};
  const fs::path parent = link.has_parent_path() ? link.parent_path() : ".";
  if (::lstat(link.c_str(), &own) != 0 || ::stat(parent.c_str(), &folder) != 0) return false;
  return (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0 && own.st_uid != ::geteuid() &&
         own.st_uid != folder.st_uid;
}

// The number of a descriptor that this program was started with, from its name in the file system.
[[nodiscard]] std::optional<int> handed_over(std::string_view path) {
  if (path == kStandardOutput) return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int number = 0;
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) return number;
  }
  return std::nullopt;
}

// A pipe or a terminal may be shared with a program that has made it non-blocking.
void wait_until_writable(int descriptor) {
  pollfd output{descriptor, POLLOUT, 0};
  ::poll(&output, 1, -1);
}

}  // namespace

std::string behind_links(const std::string& named) {
  fs::path path = named;
  for (int link = 0; fs::is_symlink(path); ++link) {
    if (link == kMostLinks) refuse_to_write(named, "too many links");
    if (is_anothers_trap(path))
      refuse_to_write(named, "it is another user's link in a folder that everybody writes to");
    path = path.parent_path() / fs::read_symlink(path);
  }
  return path.string();
}

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(written));
    else if (errno == EAGAIN)
      wait_until_writable(descriptor);
    else if (errno != EINTR)
      throw std::system_error(errno, std::generic_category());
  }
}

void write_file_atomically(const std::string& path, std::string_view text) {
  GrowingFile file(path, WhenTaken::replace);
  file.write(text);
  file.keep();
}

GrowingFile::GrowingFile(const std::string& path, WhenTaken when_taken) : named_(path) {
  try {
    if (handed_over(path) || (fs::exists(path) && !fs::is_regular_file(path)))
      open_special(path);
    else
      temporary_.emplace(behind_links(path), TemporaryKind::file);
  } catch (const std::system_error& error) {
    refuse(error.code().message());
  }
  if (temporary_ && when_taken == WhenTaken::refuse) refuse_if_taken(*temporary_, path);
}

void GrowingFile::open_special(const std::string& path) {
  if (fs::is_directory(path)) throw InputError(path, "is a folder; give a file to write");
  const auto number = handed_over(path);
  special_ = Descriptor(number ? ::fcntl(*number, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (special_.number() < 0) refuse(std::generic_category().message(errno));
}

void GrowingFile::write(std::string_view text) {
  try {
    write_all(temporary_ ? temporary_->descriptor() : special_.number(), text);
  } catch (const std::system_error& error) {
    refuse(error.code().message());
  }
}

void GrowingFile::keep() {
  try {
    if (temporary_) temporary_->take_place();
  } catch (const std::system_error& error) {
    refuse(error.code().message());
  }
}

void GrowingFile::refuse(const std::string& why) const { refuse_to_write(named_, why); }

NewFolder::NewFolder(const std::string& path) : named_(path) {
  try {
    temporary_.emplace(path, TemporaryKind::folder);
  } catch (const std::system_error& error) {
    refuse_to_write(path, error.code().message());
  }
  refuse_if_taken(*temporary_, path);
}

void NewFolder::keep() {
  try {
    temporary_->take_place();
  } catch (const std::system_error& error) {
    refuse_to_write(named_, error.code().message());
  }
}

}  // namespace dculab::files
