// Occupancy against published figures of real kernels and of LLVM's tables.
#include "lower/occupancy.hpp"

#include "tests/sim/machines.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

WaveResources gfx906_waves() { return sim::test::mi50_like().waves; }

WaveResources gfx942() {
  WaveResources waves = gfx906_waves();
  waves.max_waves_per_simd = 8;
  waves.vgprs_per_lane = 512;
  waves.vgpr_granule = 8;
  return waves;
}

TEST_CASE("waves per SIMD follow LLVM's register table for 256-register parts") {
  for (const auto& [vgprs, waves] : {std::pair{1, 10},
                                     {24, 10},
                                     {25, 9},
                                     {28, 9},
                                     {32, 8},
                                     {36, 7},
                                     {40, 6},
                                     {48, 5},
                                     {64, 4},
                                     {84, 3},
                                     {128, 2},
                                     {129, 1},
                                     {256, 1}})
    CHECK(waves_per_simd(gfx906_waves(), {.threads = 64, .vgprs = vgprs}) == waves);
}

TEST_CASE("scalar registers limit waves on GCN") {
  for (const auto& [sgprs, waves] : {std::pair{80, 10}, {88, 9}, {100, 8}, {102, 7}})
    CHECK(waves_per_simd(gfx906_waves(), {.threads = 64, .vgprs = 16, .sgprs = sgprs}) == waves);
}

TEST_CASE("a GEMM observed on gfx942: 184 VGPRs give two workgroups per CU, 57 KiB of LDS one") {
  CHECK(workgroups_per_unit(gfx942(), {.threads = 256, .vgprs = 184}) == 2);
  CHECK(workgroups_per_unit(gfx942(), {.threads = 256, .vgprs = 184, .lds = Bytes(58368)}) == 1);
}

TEST_CASE("K500SM_AI: two workgroups of 1024 threads, or of 24 KB of LDS") {
  CHECK(workgroups_per_unit(gfx906_waves(), {.threads = 1024, .vgprs = 24}) == 2);
  CHECK(workgroups_per_unit(gfx906_waves(), {.threads = 256, .vgprs = 24, .lds = 24 * kKiB}) == 2);
}

TEST_CASE("the limit of workgroups holds those of several waves only") {
  CHECK(workgroups_per_unit(gfx906_waves(), {.threads = 64, .vgprs = 16}) == 40);
  CHECK(workgroups_per_unit(gfx906_waves(), {.threads = 128, .vgprs = 16}) == 16);
}

TEST_CASE("a workgroup that needs more LDS than there is does not fit") {
  CHECK(workgroups_per_unit(gfx906_waves(), {.threads = 256, .vgprs = 24, .lds = 65 * kKiB}) == 0);
}

TEST_CASE("LDS is given out in granules") {
  CHECK(workgroups_per_unit(gfx906_waves(), {.threads = 64, .vgprs = 16, .lds = Bytes(13107)}) ==
        4);  // 13312 allocated
  CHECK(workgroups_per_unit(gfx906_waves(), {.threads = 64, .vgprs = 16, .lds = Bytes(12800)}) == 5);
}

}  // namespace
}  // namespace dculab::lower::test
