// A file's bytes, mapped read-only into memory for as long as the object lives.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace dculab::engine {

class MappedFile {
 public:
  MappedFile() = default;
  // Throws InputError when the file is missing, unreadable or not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace dculab::engine
