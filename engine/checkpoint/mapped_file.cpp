#include "engine/checkpoint/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(const char* path) : value_(::open(path, O_RDONLY | O_CLOEXEC)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int value() const { return value_; }

 private:
  int value_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const FileDescriptor file(path.c_str());
  if (file.value() < 0) throw InputError(path.string(), std::string("cannot be opened (") + std::strerror(errno) + ")");
  struct stat status {};
  if (::fstat(file.value(), &status) != 0 || !S_ISREG(status.st_mode))
    throw InputError(path.string(), "is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value(), 0);
  if (address == MAP_FAILED)
    throw InputError(path.string(), std::string("cannot be mapped (") + std::strerror(errno) + ")");
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace dculab::engine
