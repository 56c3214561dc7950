#include "engine/checkpoint/mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "files/input.hpp"

namespace dculab::engine {
MappedFile::MappedFile(const std::filesystem::path& path) {
  const files::Descriptor file = files::open_regular(path.string());
  struct stat status {};
  if (::fstat(file.number(), &status) != 0)
    throw InputError(path.string(), std::string("cannot be read (") + std::strerror(errno) + ")");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
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
