#include "files/input.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace dculab::files {
namespace {

constexpr std::size_t kPiece = 1 << 16;

[[nodiscard]] const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

[[noreturn]] void refuse_kind(const std::string& path, mode_t mode) {
  throw InputError(path, std::string("is ") + kind_of(mode) + ", not a file");
}

// Held open, so that no other file gets its number when it is replaced.
struct ReservedFile {
  Descriptor file;
  std::string by;
};

[[nodiscard]] std::vector<ReservedFile>& reserved_files() {
  static std::vector<ReservedFile> files;
  return files;
}

[[nodiscard]] bool is_same_file(int one, int other) {
  struct stat first {
  }, second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

void refuse_reserved(int descriptor, const std::string& path) {
  for (const ReservedFile& reserved : reserved_files())
    if (is_same_file(descriptor, reserved.file.number()))
      throw ReservedFileError(path, "is read here and written by " + reserved.by + "; name another file to write");
}

[[nodiscard]] Descriptor open_to_read(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (file.number() >= 0) {
    refuse_reserved(file.number(), path);
    return file;
  }
  const int reason = errno;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) refuse_kind(path, status.st_mode);
  throw InputError(path, std::string("cannot be opened (") + std::strerror(reason) + ")");
}

[[nodiscard]] std::size_t read_some(int descriptor, const std::string& path, char* to, std::size_t size) {
  for (;;) {
    const ssize_t got = ::read(descriptor, to, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) throw InputError(path, std::string("cannot be read to its end (") + std::strerror(errno) + ")");
  }
}

[[noreturn]] void refuse_size(const std::string& path, std::size_t limit) {
  throw InputError(path, "is larger than " + std::to_string(limit) + " bytes; is it the right file?");
}

[[nodiscard]] std::string read_to_end(int descriptor, const std::string& path, std::size_t limit) {
  struct stat status {};
  const std::size_t expected = ::fstat(descriptor, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
  std::string text(std::min(expected, limit) + 1, '\0');  // one more, to see the end without another piece
  for (std::size_t size = 0;;) {
    if (size == text.size()) text.resize(size + std::min(std::max(kPiece, size), limit + 1 - size));
    const std::size_t got = read_some(descriptor, path, text.data() + size, text.size() - size);
    size += got;
    if (size > limit) refuse_size(path, limit);
    if (got == 0) {
      text.resize(size);
      return text;
    }
  }
}

// What came through a pipe, which gives it only once, by the pipe's device and number.
[[nodiscard]] std::string read_pipe(const Descriptor& pipe, const std::string& path, const struct stat& status,
                                    std::size_t limit) {
  static std::mutex one_at_a_time;
  static std::map<std::pair<dev_t, ino_t>, std::string> texts;
  const std::scoped_lock lock(one_at_a_time);
  const auto [text, is_new] = texts.try_emplace({status.st_dev, status.st_ino});
  if (is_new) {
    try {
      text->second = read_to_end(pipe.number(), path, limit);
    } catch (...) {
      texts.erase(text);
      throw;
    }
  }
  if (text->second.size() > limit) refuse_size(path, limit);
  return text->second;
}

}  // namespace

void reserve_for_output(const std::string& path, const std::string& by) {
  Descriptor file(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  reserved_files().push_back({std::move(file), by});
}

void require_regular(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0)
    throw InputError(path, std::string("cannot be read (") + std::strerror(errno) + ")");
  if (!S_ISREG(status.st_mode)) refuse_kind(path, status.st_mode);
}

Descriptor open_regular(const std::string& path) {
  Descriptor file = open_to_read(path, O_NONBLOCK);  // or opening a FIFO would wait for a writer
  require_regular(file.number(), path);
  return file;
}

bool is_handed_over(std::string_view path) {
  return path == kStandardInput || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

std::string read_text(const std::string& path, std::size_t limit) {
  if (!is_handed_over(path)) {
    const Descriptor file = open_regular(path);
    return read_to_end(file.number(), path, limit);
  }
  const Descriptor file = open_to_read(path, 0);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0 || S_ISREG(status.st_mode)) return read_to_end(file.number(), path, limit);
  return read_pipe(file, path, status, limit);
}

std::function<std::string_view()> read_text_pieces(const std::string& path, std::size_t limit) {
  if (is_handed_over(path))
    return [text = read_text(path, limit), is_read = false]() mutable {
      return std::exchange(is_read, true) ? std::string_view() : std::string_view(text);
    };
  const auto file = std::make_shared<Descriptor>(open_regular(path));
  return [path, limit, file, read = std::size_t{0}, piece = std::string(kPiece, '\0')]() mutable {
    const std::size_t size = read_some(file->number(), path, piece.data(), piece.size());
    read += size;
    if (read > limit) refuse_size(path, limit);
    return std::string_view(piece).substr(0, size);
  };
}

}  // namespace dculab::files
