#include "files/temporary_name.hpp"

#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "core/fingerprint.hpp"

namespace dculab::files {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".part-";
constexpr std::size_t kMachineDigits = 8, kMomentDigits = 16, kRandomDigits = 8;
constexpr std::size_t kLongestSuffix = kMark.size() + 10 + 1 + kMachineDigits + 1 + kMomentDigits + kRandomDigits;
constexpr std::size_t kLongestName = 255;
constexpr std::time_t kDay = 24 * 60 * 60;

struct Parts {
  pid_t process = 0;
  std::uint64_t machine = 0;
  std::string_view moment;  // and the random digits: in the order of the alphabet they are in that of time
};

[[nodiscard]] std::uint64_t this_machine() {
  static const std::uint64_t machine = [] {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat processes {};
    ::stat("/proc/self/ns/pid", &processes);
    return fingerprint(boot, processes.st_ino) >> 32U;
  }();
  return machine;
}

[[nodiscard]] std::string start_of_names(const fs::path& target) {
  return target.filename().string().substr(0, kLongestName - kLongestSuffix) + std::string(kMark);
}

[[nodiscard]] std::optional<std::uint64_t> hexadecimal(std::string_view digits) {
  std::uint64_t value = 0;
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

// Nothing for a name that new_temporary_name did not give.
[[nodiscard]] std::optional<Parts> parts_of(std::string_view name, std::string_view start) {
  if (!name.starts_with(start)) return std::nullopt;
  name.remove_prefix(start.size());
  Parts parts;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), parts.process);
  const auto digits = static_cast<std::size_t>(end - name.data());
  if (error != std::errc() || parts.process <= 0 || name[0] == '0') return std::nullopt;
  name.remove_prefix(digits);
  if (name.size() != 1 + kMachineDigits + 1 + kMomentDigits + kRandomDigits) return std::nullopt;
  if (name[0] != '-' || name[1 + kMachineDigits] != '-') return std::nullopt;
  const auto machine = hexadecimal(name.substr(1, kMachineDigits));
  parts.moment = name.substr(1 + kMachineDigits + 1);
  if (!machine || !hexadecimal(parts.moment.substr(0, kMomentDigits)) ||
      !hexadecimal(parts.moment.substr(kMomentDigits)))
    return std::nullopt;
  parts.machine = *machine;
  return parts;
}

// Calls `take` with each temporary of the target that is there, and what its name says.
void for_each_temporary(const fs::path& target, const std::function<void(const fs::path&, const Parts&)>& take) {
  const std::string start = start_of_names(target);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (const auto parts = parts_of(name, start)) take(entry->path(), *parts);
  }
}

// The names that this process gave.
struct OwnNames {
  std::mutex mutex;
  std::set<std::string, std::less<>> moments;
};
OwnNames& own_names() {
  static OwnNames& names = *new OwnNames;
  return names;
}

[[nodiscard]] bool is_running(const Parts& parts) {
  if (parts.process == ::getpid()) {  // or a process before it, which had its number
    const std::lock_guard lock(own_names().mutex);
    return own_names().moments.contains(parts.moment);
  }
  return ::kill(parts.process, 0) == 0 || errno != ESRCH;
}

// Whether it is this user's, and of a kind that is made here. A name alone proves nothing: others can choose it.
[[nodiscard]] bool is_own(const fs::path& path, struct stat& status) {
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid() &&
         (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

[[nodiscard]] bool is_stale(const fs::path& path, const Parts& parts) {
  struct stat status {};
  if (!is_own(path, status)) return false;
  if (parts.machine == this_machine()) return !is_running(parts);
  return std::time(nullptr) - status.st_mtime > kDay;
}

}  // namespace

std::string new_temporary_name(const std::string& target) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, 0) < 0) random = static_cast<std::uint32_t>(now.tv_nsec);
  const std::uint64_t moment =
      static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
  std::array<char, kLongestSuffix + 1> text{};
  std::snprintf(text.data(), text.size(), "%d-%08llx-%016llx%08x", ::getpid(),
                static_cast<unsigned long long>(this_machine()), static_cast<unsigned long long>(moment), random);
  const std::string suffix = text.data();
  {
    const std::lock_guard lock(own_names().mutex);
    own_names().moments.insert(suffix.substr(suffix.size() - kMomentDigits - kRandomDigits));
  }
  const fs::path path(target);
  return (path.parent_path() / (start_of_names(path) + suffix)).string();
}

void remove_stale_temporaries(const std::string& target) {
  for_each_temporary(target, [](const fs::path& path, const Parts& parts) {
    std::error_code ignored;
    if (is_stale(path, parts)) fs::remove_all(path, ignored);
  });
}

std::string earlier_temporary(const std::string& target, const std::string& own) {
  const std::string own_name = fs::path(own).filename().string();
  const auto own_parts = parts_of(own_name, start_of_names(target));
  std::string earlier;
  for_each_temporary(target, [&](const fs::path& path, const Parts& parts) {
    struct stat status {};
    if (own_parts && parts.moment < own_parts->moment && is_own(path, status)) earlier = path.string();
  });
  return earlier;
}

}  // namespace dculab::files
