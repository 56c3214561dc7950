#include "engine/probe/topology.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

std::string trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\n") - first + 1));
}

// sysfs files do not know their size: read to the end.
std::optional<std::string> read_text(const fs::path& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::optional<int> parse_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct CacheEntry {
  CacheLevel level;
  std::string shared;  // names the instance
};

// One index folder; nothing for instruction caches and for folders that are incomplete.
std::optional<CacheEntry> read_cache(const fs::path& folder) {
  const auto text = [&](const char* file) { return trim(read_text(folder / file).value_or("")); };
  if (text("type") == "Instruction") return std::nullopt;
  const auto level = parse_int(text("level"));
  const auto size = parse_cache_size(text("size"));
  const auto line = parse_int(text("coherency_line_size"));
  const auto cpus = parse_cpu_list(text("shared_cpu_list"));
  if (!level || !size || !line || *line <= 0 || !cpus) return std::nullopt;
  return CacheEntry{{*level, *size, Bytes(*line), static_cast<int>(cpus->size()), 1}, text("shared_cpu_list")};
}

// Folders "cpu0", "cpu1", ... or "index0", ...: a name and a number.
std::vector<fs::path> list_numbered(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && parse_int(std::string_view(name).substr(prefix.size()))) {
      found.push_back(entry.path());
    }
  }
  return found;
}

std::vector<CacheLevel> read_caches(const fs::path& cpus) {
  std::map<int, CacheLevel> levels;
  std::map<int, std::set<std::string>> instances;
  for (const fs::path& cpu : list_numbered(cpus, "cpu")) {
    for (const fs::path& index : list_numbered(cpu / "cache", "index")) {
      const auto entry = read_cache(index);
      if (!entry) continue;
      levels.try_emplace(entry->level.level, entry->level);
      instances[entry->level.level].insert(entry->shared);
    }
  }
  std::vector<CacheLevel> caches;
  for (auto& [level, cache] : levels) {
    cache.instances = static_cast<int>(instances[level].size());
    caches.push_back(cache);
  }
  return caches;
}

// Small enough to lie inside the caches of any CPU of the last ten years.
std::vector<CacheLevel> assumed_caches() {
  return {{1, 32 * kKiB, Bytes(64), 1, 1}, {2, 256 * kKiB, Bytes(64), 1, 1}, {3, 8 * kMiB, Bytes(64), 1, 1}};
}

std::optional<Bytes> find_memory(std::string_view meminfo, std::string_view key) {
  const auto value = find_proc_value(meminfo, key);
  if (!value || !value->ends_with(" kB")) return std::nullopt;
  const auto kilobytes = value->substr(0, value->size() - 3);
  double parsed = 0;
  const auto [end, error] = std::from_chars(kilobytes.data(), kilobytes.data() + kilobytes.size(), parsed);
  if (error != std::errc() || end != kilobytes.data() + kilobytes.size()) return std::nullopt;
  return parsed * kKiB;
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  std::istringstream ranges{trim(text)};
  for (std::string range; std::getline(ranges, range, ',');) {
    const auto dash = range.find('-');
    const auto first = parse_int(std::string_view(range).substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_int(std::string_view(range).substr(dash + 1));
    if (!first || !last || *first > *last) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  if (cpus.empty()) return std::nullopt;
  return cpus;
}

std::optional<Bytes> parse_cache_size(std::string_view text) {
  const std::string value = trim(text);
  const bool has_unit = !value.empty() && (value.back() == 'K' || value.back() == 'M');
  const auto number = parse_int(std::string_view(value).substr(0, value.size() - (has_unit ? 1 : 0)));
  if (!number || *number <= 0) return std::nullopt;
  if (!has_unit) return Bytes(*number);
  return *number * (value.back() == 'K' ? kKiB : kMiB);
}

std::optional<std::string> find_proc_value(std::string_view text, std::string_view key) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon != std::string::npos && trim(std::string_view(line).substr(0, colon)) == key) {
      return trim(std::string_view(line).substr(colon + 1));
    }
  }
  return std::nullopt;
}

Bytes bandwidth_working_set(const std::vector<CacheLevel>& caches, std::size_t index) {
  const Bytes size = caches[index].size;
  if (index == 0) return 0.5 * size;
  return Bytes(std::sqrt(size.value() * caches[index - 1].size.value()));
}

Bytes latency_working_set(const std::vector<CacheLevel>& caches, std::size_t index) {
  const Bytes set = bandwidth_working_set(caches, index);
  return index == 0 ? set : std::min(set, 2.0 * caches[index - 1].size);
}

Topology read_topology(const fs::path& root) {
  Topology topology;
  const std::string cpuinfo = read_text(root / "proc/cpuinfo").value_or("");
  const std::string meminfo = read_text(root / "proc/meminfo").value_or("");
  topology.cpu = find_proc_value(cpuinfo, "model name").value_or("");
  if (topology.cpu.empty()) {
    topology.cpu = "unnamed CPU";
    topology.notes.push_back("/proc/cpuinfo names no CPU model");
  }
  topology.caches = read_caches(root / "sys/devices/system/cpu");
  if (topology.caches.empty()) {
    topology.caches = assumed_caches();
    topology.notes.push_back("no cache sizes in /sys/devices/system/cpu: 32 KiB, 256 KiB and 8 MiB are assumed");
  }
  const auto memory = find_memory(meminfo, "MemTotal");
  if (!memory) topology.notes.push_back("no MemTotal in /proc/meminfo: 4 GiB of memory are assumed");
  topology.memory = memory.value_or(4 * kGiB);
  topology.available = find_memory(meminfo, "MemAvailable").value_or(0.5 * topology.memory);
  return topology;
}

}  // namespace dculab::engine
