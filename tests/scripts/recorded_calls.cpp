// Preloaded into a program: records what it does to the files below $RECORDED_FOLDER, in order, into $RECORDED_CALLS,
// for power_loss_test.py to replay. One call a line: its name, its numbers, and bytes or paths in hexadecimal digits.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace {

constexpr int kMostFiles = 1024;
std::array<bool, kMostFiles> is_recorded;
std::recursive_mutex mutex;  // what is done and what is recorded are in one order

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_below(const char* path) {
  static const char* folder = std::getenv("RECORDED_FOLDER");
  return folder != nullptr && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

std::string hexadecimal(const void* bytes, std::size_t size) {
  std::string text;
  for (std::size_t index = 0; index < size; ++index) {
    const unsigned char byte = static_cast<const unsigned char*>(bytes)[index];
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  return text;
}

std::string hexadecimal(const char* path) { return hexadecimal(path, std::strlen(path)); }

void record(std::string line) {
  static const int log =
      next<int(const char*, int, ...)>("open")(std::getenv("RECORDED_CALLS"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  static auto* write_line = next<ssize_t(int, const void*, std::size_t)>("write");
  line += '\n';
  if (write_line(log, line.data(), line.size()) < 0) std::abort();
}

int opened(int file, const char* path, int flags) {
  if (file < 0 || file >= kMostFiles) return file;
  is_recorded[static_cast<std::size_t>(file)] = is_below(path);
  if (is_below(path))
    record("open " + std::to_string(file) + " " + ((flags & O_CREAT) != 0 ? "1 " : "0 ") + hexadecimal(path));
  return file;
}

bool records(int file) { return file >= 0 && file < kMostFiles && is_recorded[static_cast<std::size_t>(file)]; }

mode_t mode_of(int flags, va_list arguments) { return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0; }

// A call with a descriptor only, and one with a path only.
int on_file(const char* name, int file) {
  const std::lock_guard lock(mutex);
  const int result = next<int(int)>(name)(file);
  if (result == 0 && records(file)) record(std::string(name) + " " + std::to_string(file));
  return result;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  const std::lock_guard lock(mutex);
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(next<int(const char*, int, ...)>("open")(path, flags, mode), path, flags);
}

ssize_t write(int file, const void* bytes, std::size_t size) {
  const std::lock_guard lock(mutex);
  const ssize_t done = next<ssize_t(int, const void*, std::size_t)>("write")(file, bytes, size);
  if (done > 0 && records(file))
    record("write " + std::to_string(file) + " -1 " + hexadecimal(bytes, static_cast<std::size_t>(done)));
  return done;
}

ssize_t pwrite(int file, const void* bytes, std::size_t size, off_t place) {
  const std::lock_guard lock(mutex);
  const ssize_t done = next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite")(file, bytes, size, place);
  if (done > 0 && records(file))
    record("write " + std::to_string(file) + " " + std::to_string(place) + " " +
           hexadecimal(bytes, static_cast<std::size_t>(done)));
  return done;
}

int ftruncate(int file, off_t size) noexcept {
  const std::lock_guard lock(mutex);
  const int result = next<int(int, off_t)>("ftruncate")(file, size);
  if (result == 0 && records(file)) record("ftruncate " + std::to_string(file) + " " + std::to_string(size));
  return result;
}

int fsync(int file) { return on_file("fsync", file); }
int fdatasync(int file) { return on_file("fdatasync", file); }

int rename(const char* from, const char* to) noexcept {
  const std::lock_guard lock(mutex);
  const int result = next<int(const char*, const char*)>("rename")(from, to);
  if (result == 0 && is_below(to)) record("rename " + hexadecimal(from) + " " + hexadecimal(to));
  return result;
}

}  // extern "C"
