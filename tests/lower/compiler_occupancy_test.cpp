// Does the occupancy of every compiled kernel equal what the compiler itself says?
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lower/occupancy.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower {
namespace {

// A row of tests/golden/occupancy/clang19.csv, made by scripts/gpu/compiler_occupancy.py.
struct CompilerRow {
  std::string target, kernel;
  KernelResources resources;
  int waves_per_simd = 0;
};

constexpr const char* kCompilerTable = "/tests/golden/occupancy/clang19.csv";
constexpr const char* kCompiledTable = "/lower/dculab_gpu/compiled_kernels.csv";

std::vector<CompilerRow> read_rows() {
  std::ifstream file(std::string(DCULAB_SOURCE_DIR) + kCompilerTable);
  const std::regex row(R"re(([^,]+),"?([^"]+)"?,(\d+),(\d+),(\d+),(\d+),(\d+),(\d+))re");
  std::vector<CompilerRow> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::smatch match;
    REQUIRE(std::regex_match(line, match, row));
    const auto number = [&match](std::size_t index) { return std::stoi(match[index]); };
    rows.push_back({match[1], match[2], {number(3), number(4), number(6), Bytes(number(7))}, number(8)});
  }
  return rows;
}

// (target, kernel) of a table of kernels.
std::set<std::pair<std::string, std::string>> keys_of(const char* table) {
  std::ifstream file(std::string(DCULAB_SOURCE_DIR) + table);
  const std::regex key(R"re(([^,]+),(?:"([^"]+)"|([^,"]+)),.*)re");
  std::set<std::pair<std::string, std::string>> keys;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::smatch match;
    REQUIRE(std::regex_match(line, match, key));
    CHECK(keys.emplace(match[1], match[2].str() + match[3].str()).second);
  }
  return keys;
}

// LLVM's AMDGPUSubtarget: registers, LDS and limits of the three targets.
WaveResources waves_of(const std::string& target) {
  WaveResources waves;
  waves.lds_per_unit = 64 * kKiB;
  if (target != "gfx90a") return waves;
  waves.max_waves_per_simd = 8;
  waves.vgprs_per_lane = 512;
  waves.vgpr_granule = 8;
  return waves;
}

// Waves of whole workgroups on the fullest SIMD.
int resident_waves_per_simd(const WaveResources& waves, const KernelResources& kernel) {
  const int on_unit = workgroups_per_unit(waves, kernel) * waves_per_workgroup(waves, kernel);
  return (on_unit + waves.simds_per_unit - 1) / waves.simds_per_unit;
}

}  // namespace

TEST_CASE("occupancy equals clang 19's own figure for every kernel and target", "[occupancy]") {
  const std::vector<CompilerRow> rows = read_rows();
  std::map<std::string, int> kernels_of;
  for (const CompilerRow& row : rows) {
    CAPTURE(row.target, row.kernel, row.resources.vgprs, row.resources.sgprs, row.resources.lds.value());
    const int resident = resident_waves_per_simd(waves_of(row.target), row.resources);
    CHECK(resident == row.waves_per_simd);
    ++kernels_of[row.target];
  }
  for (const char* target : {"gfx906", "gfx908", "gfx90a"}) CHECK(kernels_of[target] > 100);
}

TEST_CASE("the compiler was asked about the kernels that prices rest on, and about no others", "[occupancy]") {
  auto compiled = keys_of(kCompiledTable);
  std::erase_if(compiled, [](const auto& key) { return key.first.starts_with("sm_"); });  // nvcc does not say
  CHECK(keys_of(kCompilerTable) == compiled);
}

}  // namespace dculab::lower
