// A file of records that only grows, each with a checksum that depends on its place: what was written whole, what was
// torn when power or the program went, and what was damaged later can be told apart.
//
// A record is its length, a checksum of the length, its payload and a checksum of the payload. The checksums
// find what was not meant to change, and are no protection from somebody who means to.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "files/descriptor.hpp"

namespace dculab::config {

struct JournalRecord {
  std::uint64_t begin = 0;  // of the payload in the file
  std::uint64_t size = 0;   // of the payload

  [[nodiscard]] std::uint64_t end() const;  // of the record
};

class JournalFile {
 public:
  // `flags` as of open(). Throws InputError, also for what is no regular file.
  JournalFile(std::string path, int flags);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t size() const;
  void lock() const;  // throws InputError when another program holds it

  // Up to `size` bytes at `begin`, fewer at the end of the file. Throws InputError when they cannot be read: they may
  // be whole, and must not be taken for the end and written over.
  [[nodiscard]] std::string read(std::uint64_t begin, std::uint64_t size) const;

  // The record at `place`, and its payload; nothing where none stands whole.
  [[nodiscard]] std::optional<JournalRecord> record_at(std::uint64_t place, std::string& payload) const;
  // Whether a whole record begins anywhere behind `place`. Also true where heads of records claim more bytes than torn
  // writes leave, as only forged ones do: so the time is linear in the size of the file.
  [[nodiscard]] bool has_record_behind(std::uint64_t place) const;

  // Where `bytes` go; they are with the operating system afterwards. All that was written is brought to the disk too,
  // unless that was done within the last second.
  void write(std::uint64_t place, std::string_view bytes);
  void cut(std::uint64_t size);
  void sync();            // to the disk; throws InputError
  void sync_new() const;  // so that the file itself is there after a loss of power

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  std::string path_;
  files::Descriptor descriptor_;
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
};

// The bytes of a record with `payload` at `place`.
[[nodiscard]] std::string record_bytes(std::uint64_t place, std::string_view payload);

}  // namespace dculab::config
