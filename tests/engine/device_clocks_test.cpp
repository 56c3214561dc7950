#include "engine/probe/device_clocks.hpp"

#include <fstream>

#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

void write(const std::filesystem::path& path, const char* text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("clocks and power cap are those that the driver's files state") {
  const files::test::TemporaryFolder folder;
  const std::filesystem::path device = folder.path("device");
  write(device / "pp_dpm_sclk", "0: 300Mhz \n1: 1319Mhz *\n2: 1500Mhz \n");
  write(device / "pp_dpm_mclk", "0: 350Mhz\n1: 1000Mhz *\n");
  write(device / "hwmon/hwmon3/power1_cap", "250000000\n");
  CHECK(engine::clocks_in(device) == "1319 of 1500 MHz, memory 1000 of 1000 MHz, power cap 250 W");
}

TEST_CASE("of a driver that says less, that is said, and of none nothing") {
  const files::test::TemporaryFolder folder;
  const std::filesystem::path device = folder.path("device");
  CHECK(engine::clocks_in(device).empty());
  write(device / "pp_dpm_sclk", "nonsense\n0: many\n");
  write(device / "hwmon/hwmon0/power1_cap", "\n");
  CHECK(engine::clocks_in(device).empty());
  write(device / "pp_dpm_mclk", "0: 900Mhz\n1: 500Mhz\n");
  CHECK(engine::clocks_in(device) == "memory up to 900 MHz");
  write(device / "hwmon/hwmon1/power1_cap", "300500000");
  CHECK(engine::clocks_in(device) == "memory up to 900 MHz, power cap 300 W");
}

TEST_CASE("a host that plays a GPU, and a CPU, have no clocks of a GPU") {
  CHECK(engine::device_clocks({engine::DeviceKind::host_gpu, 0}).empty());
  CHECK(engine::device_clocks({engine::DeviceKind::cpu, 0}).empty());
}
