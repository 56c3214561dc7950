#include "config/text_output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.hpp"

namespace dculab::config {
namespace {

namespace fs = std::filesystem;

// Writes everything or throws the system's reason.
void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw fs::filesystem_error("write", std::error_code(errno, std::generic_category()));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool is_special(const fs::path& path) { return fs::exists(path) && !fs::is_regular_file(path); }

// A full disk may only show when a descriptor of the file is closed.
bool is_on_disk(int descriptor) {
  const int other = ::dup(descriptor);
  return other >= 0 && ::close(other) == 0;
}

// Whether `path` still names the open file, and not one that took its place.
bool is_named(const std::string& path, int descriptor) {
  struct stat named {
  }, open{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(descriptor, &open) == 0 && named.st_dev == open.st_dev &&
         named.st_ino == open.st_ino;
}

// Through a link to the file it names, so that the link stays.
std::string behind_link(const std::string& path) {
  return fs::is_symlink(path) ? fs::weakly_canonical(path).string() : path;
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
  GrowingFile file(path, WhenTaken::wait);
  file.write(text);
  file.keep();
}

GrowingFile::GrowingFile(const std::string& path, WhenTaken when_taken) : named_(path) {
  try {
    path_ = behind_link(path);
    if (fs::is_directory(path_)) throw InputError(path, "is a folder; give a file to write");
    written_ = is_special(path_) ? path_ : path_ + ".part";
  } catch (const fs::filesystem_error& error) {
    refuse(error.code().message());
  }
  const bool is_part = written_ != path_;
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = ::open(written_.c_str(), O_WRONLY | O_CLOEXEC | (is_part ? O_CREAT : 0), 0666);
    if (descriptor_ < 0) refuse(std::strerror(errno));
  } while (is_part && lock(when_taken) && !is_named(written_, descriptor_));
  if (is_part && ::ftruncate(descriptor_, 0) != 0) close_and_refuse(std::strerror(errno));
}

bool GrowingFile::lock(WhenTaken when_taken) {
  const int operation = when_taken == WhenTaken::wait ? LOCK_EX : LOCK_EX | LOCK_NB;
  while (::flock(descriptor_, operation) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) close_and_refuse("another program is writing it");
    return false;
  }
  return true;
}

GrowingFile::~GrowingFile() {
  if (descriptor_ < 0) return;
  std::error_code ignored;
  if (written_ != path_) fs::remove(written_, ignored);
  ::close(descriptor_);
}

void GrowingFile::write(std::string_view text) {
  try {
    write_all(descriptor_, text);
  } catch (const fs::filesystem_error& error) {
    refuse(error.code().message());
  }
}

void GrowingFile::keep() {
  if (!is_on_disk(descriptor_)) refuse(std::strerror(errno));
  std::error_code error;
  if (written_ != path_) fs::rename(written_, path_, error);
  if (error) refuse(error.message());
  ::close(std::exchange(descriptor_, -1));
}

void GrowingFile::close_and_refuse(const std::string& why) {
  ::close(std::exchange(descriptor_, -1));
  refuse(why);
}

void GrowingFile::refuse(const std::string& why) const { throw InputError(named_, "cannot be written (" + why + ")"); }

}  // namespace dculab::config
