// What a host says of its caches and memory, and what is assumed where it does not.
#include "engine/probe/topology.hpp"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/probe/sampling.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::engine;
namespace fs = std::filesystem;

namespace {

// A root folder with the files of a made-up host; removed at the end.
class FakeRoot {
 public:
  FakeRoot() : path_(fs::temp_directory_path() / ("dculab_probe_test_" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }

  void write_cache(int cpu, int index, const std::string& type, int level, const std::string& size,
                   const std::string& cpus) const {
    const fs::path folder =
        fs::path("sys/devices/system/cpu/cpu" + std::to_string(cpu)) / ("cache/index" + std::to_string(index));
    write(folder / "type", type + "\n");
    write(folder / "level", std::to_string(level) + "\n");
    write(folder / "size", size + "\n");
    write(folder / "coherency_line_size", "64\n");
    write(folder / "shared_cpu_list", cpus + "\n");
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("CPU lists and cache sizes are read as the kernel writes them", "[probe]") {
  CHECK(parse_cpu_list("0-3,8\n") == std::vector<int>{0, 1, 2, 3, 8});
  CHECK(parse_cpu_list("5") == std::vector<int>{5});
  for (const char* text : {"", "\n", "3-1", "a", "1-", "-1-", "0,,2", "1x"}) CHECK_FALSE(parse_cpu_list(text));

  CHECK(parse_cache_size("48K\n") == 48 * kKiB);
  CHECK(parse_cache_size("2M") == 2 * kMiB);
  CHECK(parse_cache_size("512") == Bytes(512));
  for (const char* text : {"", "K", "0K", "-4K", "12G", "1.5M"}) CHECK_FALSE(parse_cache_size(text));
}

TEST_CASE("values of /proc files are found by their whole key", "[probe]") {
  const std::string text =
      "MemTotal:       24684092 kB\nmodel name\t: A CPU: the second\nMemTotalPlus: 1 kB\nodd line\n";
  CHECK(find_proc_value(text, "MemTotal") == "24684092 kB");
  CHECK(find_proc_value(text, "model name") == "A CPU: the second");
  CHECK_FALSE(find_proc_value(text, "model"));
}

TEST_CASE("the topology of a host with two L3 caches", "[probe]") {
  const FakeRoot root;
  for (int cpu = 0; cpu < 12; ++cpu) {
    const std::string own = std::to_string(cpu);
    root.write_cache(cpu, 0, "Data", 1, "48K", own);
    root.write_cache(cpu, 1, "Instruction", 1, "32K", own);
    root.write_cache(cpu, 2, "Unified", 2, "1024K", own);
    root.write_cache(cpu, 10, "Unified", 3, "32768K", cpu < 6 ? "0-5" : "6-11");
  }
  root.write("sys/devices/system/cpu/cpufreq/boost", "1\n");
  root.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\n");
  root.write("proc/meminfo", "MemTotal:  2097152 kB\nMemFree: 1 kB\nMemAvailable: 1048576 kB\n");

  const Topology topology = read_topology(root.path());
  CHECK(topology.cpu == "Some CPU");
  CHECK(topology.memory == 2 * kGiB);
  CHECK(topology.available == 1 * kGiB);
  CHECK(topology.notes.empty());
  REQUIRE(topology.caches.size() == 3);
  CHECK(topology.caches[0] == CacheLevel{1, 48 * kKiB, Bytes(64), 1, 12});
  CHECK(topology.caches[1] == CacheLevel{2, 1 * kMiB, Bytes(64), 1, 12});
  CHECK(topology.caches[2] == CacheLevel{3, 32 * kMiB, Bytes(64), 6, 2});
  CHECK(bandwidth_working_set(topology.caches, 0) == 24 * kKiB);
  CHECK_THAT(bandwidth_working_set(topology.caches, 2) / kMiB, WithinRel(std::sqrt(32.0), 1e-12));
  CHECK(latency_working_set(topology.caches, 0) == 24 * kKiB);
  CHECK(latency_working_set(topology.caches, 2) == 2 * kMiB);
}

TEST_CASE("what the system does not tell is assumed and said", "[probe]") {
  const FakeRoot root;
  SECTION("nothing there") {}
  SECTION("files that say nothing") {
    root.write_cache(0, 0, "Data", 1, "none", "0");
    root.write_cache(0, 1, "Unified", 2, "1M", "x");
    root.write("proc/cpuinfo", "processor: 0\nmodel name:\n");
    root.write("proc/meminfo", "MemTotal: lots\n");
  }
  const Topology topology = read_topology(root.path());
  REQUIRE(topology.caches.size() == 3);
  for (const CacheLevel& cache : topology.caches) CHECK(cache.line == Bytes(64));
  CHECK(topology.caches[0].size < topology.caches[1].size);
  CHECK(topology.caches[1].size < topology.caches[2].size);
  CHECK(topology.memory > Bytes(0));
  CHECK(topology.available > Bytes(0));
  CHECK(topology.notes.size() == 3);
}
