// What the operating system says about this host: its caches, its CPU, its memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace dculab::engine {

// One level of data or unified cache.
struct CacheLevel {
  int level = 1;
  Bytes size;  // of one instance
  Bytes line;
  int cpus_sharing = 1;  // CPUs on one instance
  int instances = 1;     // on the whole host

  friend bool operator==(const CacheLevel&, const CacheLevel&) = default;
};

struct Topology {
  std::string cpu;                 // model name
  std::vector<CacheLevel> caches;  // L1 first
  Bytes memory;                    // all of it
  Bytes available;                 // what programs can still have
  std::vector<std::string> notes;  // what had to be assumed
};

// What to read for the bandwidth of caches[index]: half of L1, and for the others the geometric mean of the cache and
// the one above it, well outside the one and well inside the other.
[[nodiscard]] Bytes bandwidth_working_set(const std::vector<CacheLevel>& caches, std::size_t index);

// What to walk through for its latency: at most twice the cache above. A slow walk through more loses its lines to
// other tenants on a shared cache before it comes back to them.
[[nodiscard]] Bytes latency_working_set(const std::vector<CacheLevel>& caches, std::size_t index);

// Reads /sys/devices/system/cpu, /proc/cpuinfo and /proc/meminfo below `root`. What is missing is assumed and noted.
[[nodiscard]] Topology read_topology(const std::filesystem::path& root = "/");

// "0-3,8" -> 0 1 2 3 8; nothing when malformed.
[[nodiscard]] std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// "48K", "32768K", "2M" -> bytes.
[[nodiscard]] std::optional<Bytes> parse_cache_size(std::string_view text);

// The value of "key : value" or "key: value kB" in the text of /proc/cpuinfo or /proc/meminfo.
[[nodiscard]] std::optional<std::string> find_proc_value(std::string_view text, std::string_view key);

}  // namespace dculab::engine
