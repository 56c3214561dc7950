#include "config/journal_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "config/little_endian.hpp"
#include "core/error.hpp"
#include "core/fingerprint.hpp"
#include "files/input.hpp"
#include "files/temporary.hpp"

namespace dculab::config {
namespace {

constexpr std::uint64_t kHead = 2 * kWordBytes;
constexpr std::uint64_t kLargestRecord = 1 << 26;
constexpr std::uint64_t kWindow = 1 << 20;  // bytes that are searched at a time
// Of a file's size: what is hashed in search of a record. What torn records there are lie one behind the other; only
// heads that somebody forged make more.
constexpr std::uint64_t kMostHashed = 4;
constexpr std::chrono::seconds kSyncInterval{1};

// The payload's size from a record's first bytes; nothing where they are no head of a record at `place`, or of one that
// reaches behind the end of the file.
[[nodiscard]] std::optional<std::uint64_t> size_in_head(std::string_view head, std::uint64_t place,
                                                        std::uint64_t file_size) {
  const std::uint64_t size = from_little_endian(head);
  if (size > kLargestRecord || place + kHead + size + kWordBytes > file_size) return std::nullopt;
  if (from_little_endian(head.substr(kWordBytes)) != fingerprint(head.substr(0, kWordBytes), place))
    return std::nullopt;
  return size;
}

}  // namespace

std::uint64_t JournalRecord::end() const { return begin + size + kWordBytes; }

std::string record_bytes(std::uint64_t place, std::string_view payload) {
  const std::string length = to_little_endian(payload.size());
  std::string bytes = length + to_little_endian(fingerprint(length, place));
  bytes += payload;
  return bytes + to_little_endian(fingerprint(payload, place));
}

JournalFile::JournalFile(std::string path, int flags)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), flags | O_NONBLOCK | O_CLOEXEC, 0666)) {
  if (descriptor_.number() < 0 && errno == EEXIST) {
    const files::Descriptor there(::open(path_.c_str(), O_PATH | O_CLOEXEC));
    if (there.number() >= 0) files::require_regular(there.number(), path_);
    refuse("is there already; add --resume to go on with it, or remove it to begin anew");
  }
  if (descriptor_.number() < 0) refuse(std::string("cannot be opened (") + std::strerror(errno) + ")");
  files::require_regular(descriptor_.number(), path_);
}

void JournalFile::refuse(const std::string& why) const { throw InputError(path_, "this journal " + why); }

std::uint64_t JournalFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0) refuse(std::string("cannot be read (") + std::strerror(errno) + ")");
  return static_cast<std::uint64_t>(status.st_size);
}

void JournalFile::lock() const {
  if (::flock(descriptor_.number(), LOCK_EX | LOCK_NB) == 0) return;
  refuse(errno == EWOULDBLOCK
             ? "is being written by another study"
             : std::string("cannot be locked (") + std::strerror(errno) + "); keep it on a file system with locks");
}

std::string JournalFile::read(std::uint64_t begin, std::uint64_t size) const {
  const std::uint64_t there = this->size();
  std::string bytes(std::min(size, there - std::min(begin, there)), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        ::pread(descriptor_.number(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(std::string("cannot be read (") + std::strerror(errno) + ")");
    if (got == 0) bytes.resize(done);
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::optional<JournalRecord> JournalFile::record_at(std::uint64_t place, std::string& payload) const {
  const std::string head = read(place, kHead);
  if (head.size() < kHead) return std::nullopt;
  const auto size = size_in_head(head, place, this->size());
  if (!size) return std::nullopt;
  payload = read(place + kHead, *size + kWordBytes);
  if (payload.size() < *size + kWordBytes) return std::nullopt;
  const std::uint64_t checksum = from_little_endian(std::string_view(payload).substr(*size));
  payload.resize(*size);
  if (checksum != fingerprint(payload, place)) return std::nullopt;
  return JournalRecord{place + kHead, *size};
}

bool JournalFile::has_record_behind(std::uint64_t place) const {
  std::string payload;
  const std::uint64_t file_size = size();
  std::uint64_t left = kMostHashed * file_size;
  for (std::uint64_t begin = place + 1;; begin += kWindow) {
    const std::string window = read(begin, kWindow + kHead - 1);
    for (std::uint64_t offset = 0; offset < kWindow && offset + kHead <= window.size(); ++offset) {
      const auto claimed = size_in_head(std::string_view(window).substr(offset), begin + offset, file_size);
      if (!claimed) continue;
      if (*claimed > left || record_at(begin + offset, payload)) return true;
      left -= *claimed;
    }
    if (window.size() < kWindow + kHead - 1) return false;
  }
}

void JournalFile::write(std::uint64_t place, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_.number(), bytes.data(), bytes.size(), static_cast<off_t>(place));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(std::string("cannot be written (") + std::strerror(errno) + ")");
    bytes.remove_prefix(static_cast<std::size_t>(written));
    place += static_cast<std::uint64_t>(written);
  }
  if (std::chrono::steady_clock::now() - synced_ >= kSyncInterval) sync();
}

void JournalFile::cut(std::uint64_t size) {
  if (::ftruncate(descriptor_.number(), static_cast<off_t>(size)) != 0)
    refuse(std::string("cannot be written (") + std::strerror(errno) + ")");
}

void JournalFile::sync() {
  try {
    files::sync_data(descriptor_.number());
  } catch (const std::system_error& error) {
    refuse("cannot be written (" + error.code().message() + ")");
  }
  synced_ = std::chrono::steady_clock::now();
}

void JournalFile::sync_new() const {
  try {
    files::sync_folder(std::filesystem::path(path_).parent_path());
  } catch (const std::system_error& error) {
    refuse("cannot be written (" + error.code().message() + ")");
  }
}

}  // namespace dculab::config
