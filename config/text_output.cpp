#include "config/text_output.hpp"

#include <fcntl.h>
#include <sys/file.h>
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

void write_to(const fs::path& path, int flags, std::string_view text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (descriptor < 0) throw fs::filesystem_error("open", std::error_code(errno, std::generic_category()));
  try {
    write_all(descriptor, text);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  // A full disk may only show when the file is closed.
  if (::close(descriptor) != 0) throw fs::filesystem_error("close", std::error_code(errno, std::generic_category()));
}

void replace(const fs::path& target, std::string_view text) {
  fs::path temporary = target;
  temporary += ".part-" + std::to_string(::getpid());
  try {
    write_to(temporary, O_CREAT | O_TRUNC, text);
    fs::rename(temporary, target);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
  try {
    // Through a link to the file it names, so that the link stays.
    const fs::path target = fs::is_symlink(path) ? fs::weakly_canonical(path) : fs::path(path);
    if (fs::is_directory(target)) throw InputError(path, "is a folder; give a file to write");
    if (fs::exists(target) && !fs::is_regular_file(target))
      write_to(target, 0, text);
    else
      replace(target, text);
  } catch (const fs::filesystem_error& error) {
    throw InputError(path, "cannot be written (" + error.code().message() + ")");
  }
}

GrowingFile::GrowingFile(std::string path) : path_(std::move(path)), written_(path_ + ".part") {
  const bool special = fs::exists(path_) && !fs::is_regular_file(path_);
  if (special) written_ = path_;
  descriptor_ = ::open(written_.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT, 0666);
  if (descriptor_ < 0) refuse(std::strerror(errno));
  if (special) return;
  // Where the file system has no locks, nobody is told apart.
  const bool is_taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const std::string why = is_taken                           ? "another program is writing it"
                          : ::ftruncate(descriptor_, 0) != 0 ? std::strerror(errno)
                                                             : "";
  if (why.empty()) return;
  ::close(descriptor_);
  refuse(why);
}

GrowingFile::~GrowingFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  std::error_code ignored;
  if (written_ != path_) fs::remove(written_, ignored);
}

void GrowingFile::write(std::string_view text) {
  try {
    write_all(descriptor_, text);
  } catch (const fs::filesystem_error& error) {
    refuse(error.code().message());
  }
}

void GrowingFile::keep() {
  if (::close(std::exchange(descriptor_, -1)) != 0) refuse(std::strerror(errno));
  std::error_code error;
  if (written_ != path_) fs::rename(written_, path_, error);
  if (error) refuse(error.message());
}

void GrowingFile::refuse(const std::string& why) const { throw InputError(path_, "cannot be written (" + why + ")"); }

}  // namespace dculab::config
