#include "files/temporary.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "files/temporary_name.hpp"

namespace dculab::files {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kRights = 0777, kGroupRights = 0070;

[[noreturn]] void fail(int reason) { throw std::system_error(reason, std::generic_category()); }

Descriptor open_folder(int beside, const char* name) {
  return Descriptor(::openat(beside, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// What is in a folder, without taking memory: perhaps there is none left. What cannot be removed stays.
void remove_entries(int folder) noexcept {
  alignas(dirent64) std::array<char, 4096> entries{};
  auto* const first = reinterpret_cast<dirent64*>(entries.data());  // C libraries differ in what they take
  for (ssize_t size = 0; (size = ::getdents64(folder, first, entries.size())) > 0;)
    for (ssize_t place = 0; place < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + place);
      place += entry->d_reclen;
      const char* const name = &entry->d_name[0];
      if (std::string_view(name) == "." || std::string_view(name) == "..") continue;
      if (::unlinkat(folder, name, 0) == 0) continue;
      remove_entries(open_folder(folder, name).number());
      ::unlinkat(folder, name, AT_REMOVEDIR);
    }
}

// Some file systems have nothing to sync.
void sync(int (*call)(int), int descriptor) {
  while (call(descriptor) != 0) {
    if (errno == EINVAL || errno == ENOTSUP) return;
    if (errno != EINTR) fail(errno);
  }
}

}  // namespace

void sync_data(int descriptor) { sync(::fdatasync, descriptor); }

// A folder that one may write to and not read cannot be synced.
void sync_folder(const std::string& path) {
  const Descriptor folder(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() >= 0) sync(::fsync, folder.number());
}

Temporary::Temporary(std::string target, TemporaryKind kind)
    : target_(std::move(target)), path_(new_temporary_name(target_)), kind_(kind) {
  remove_stale_temporaries(target_);
  const auto lock = without_interruption();
  undo_.emplace([this] { remove(); });
  make();
  if (kind_ == TemporaryKind::file) copy_rights();
}

Temporary::~Temporary() {
  if (undo_) remove();
}

void Temporary::make() {
  if (kind_ == TemporaryKind::folder) {
    if (::mkdir(path_.c_str(), kRights) != 0) fail(errno);
    descriptor_ = open_folder(AT_FDCWD, path_.c_str());  // for remove, when perhaps no file can be opened any more
    if (descriptor_.number() >= 0) return;
    const int reason = errno;
    ::rmdir(path_.c_str());
    fail(reason);
  }
  struct stat old {};
  const bool is_there = ::stat(target_.c_str(), &old) == 0;
  if (is_there && ::faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) fail(errno);  // it is write-protected
  const mode_t mode = is_there ? old.st_mode & kRights : 0666;
  descriptor_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (descriptor_.number() < 0) fail(errno);
}

// A group that may not be given keeps no rights, or those would be another group's.
void Temporary::copy_rights() const {
  struct stat old {};
  if (::stat(target_.c_str(), &old) != 0) return;
  mode_t mode = old.st_mode & kRights;
  struct stat now {};
  ::fstat(descriptor(), &now);
  const bool is_anothers = old.st_uid != now.st_uid || old.st_gid != now.st_gid;
  if (is_anothers && ::fchown(descriptor(), old.st_uid, old.st_gid) != 0 &&
      ::fchown(descriptor(), static_cast<uid_t>(-1), old.st_gid) != 0)
    mode &= ~kGroupRights;
  ::fchmod(descriptor(), mode);
}

void Temporary::remove() const noexcept {
  if (kind_ == TemporaryKind::file) {
    ::unlink(path_.c_str());
    return;
  }
  remove_entries(descriptor());
  ::rmdir(path_.c_str());
}

std::string Temporary::earlier() const { return earlier_temporary(target_, path_); }

void Temporary::take_place() {
  const std::string beside = fs::path(target_).parent_path();
  if (kind_ == TemporaryKind::file)
    sync(::fsync, descriptor());
  else
    sync_folder(path_);
  {
    const auto lock = without_interruption();
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail(errno);
    undo_.reset();
  }
  sync_folder(beside);
}

}  // namespace dculab::files
