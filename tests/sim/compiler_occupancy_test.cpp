// Does the occupancy of every compiled kernel equal what the compiler itself says?
#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "sim/compute/occupancy.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

// A row of tests/golden/occupancy/clang19.csv, made by scripts/gpu/compiler_occupancy.py.
struct CompilerRow {
  std::string target, kernel;
  KernelResources resources;
  int waves_per_simd = 0;
};

std::vector<CompilerRow> read_rows() {
  std::ifstream file(std::string(DCULAB_SOURCE_DIR) + "/tests/golden/occupancy/clang19.csv");
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

// The compiler takes the lower of what registers allow a SIMD and what LDS allows the unit's workgroups, the latter
// spread over the SIMDs and rounded up. Unlike workgroups_per_unit() it does not ask whether the waves that registers
// allow make whole workgroups: of 16 waves each, 7 per SIMD are only one (softmax_kernel).
int compiler_figure(const WaveResources& waves, const KernelResources& kernel) {
  KernelResources without_registers = kernel;
  without_registers.vgprs = without_registers.sgprs = 0;
  const int by_lds = workgroups_per_unit(waves, without_registers) * waves_per_workgroup(waves, kernel);
  return std::min(waves_per_simd(waves, kernel), (by_lds + waves.simds_per_unit - 1) / waves.simds_per_unit);
}

}  // namespace

TEST_CASE("occupancy equals clang 19's own figure for every kernel and target", "[occupancy]") {
  const std::vector<CompilerRow> rows = read_rows();
  std::map<std::string, int> kernels_of;
  for (const CompilerRow& row : rows) {
    CAPTURE(row.target, row.kernel, row.resources.vgprs, row.resources.sgprs, row.resources.lds.value());
    CHECK(compiler_figure(waves_of(row.target), row.resources) == row.waves_per_simd);
    ++kernels_of[row.target];
  }
  for (const char* target : {"gfx906", "gfx908", "gfx90a"}) CHECK(kernels_of[target] > 100);
}

}  // namespace dculab::sim
