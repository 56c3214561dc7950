#include "engine/probe/device_clocks.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

#include "kernels/gpu/open_device.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

[[nodiscard]] std::optional<long> leading_number(const std::string& text) {
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// "1319 of 1500 MHz", of lines such as "1: 1319Mhz *": a state each, of which the one with the star is in force.
[[nodiscard]] std::string states_text(const fs::path& path) {
  std::ifstream file(path);
  long current = 0, largest = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    const auto megahertz = colon == std::string::npos ? std::nullopt : leading_number(line.substr(colon + 2));
    if (!megahertz) continue;
    largest = std::max(largest, *megahertz);
    if (line.find('*') != std::string::npos) current = *megahertz;
  }
  if (largest <= 0) return "";
  return (current > 0 ? std::to_string(current) + " of " : "up to ") + std::to_string(largest) + " MHz";
}

[[nodiscard]] std::string power_cap_text(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "hwmon", error)) {
    std::ifstream file(entry.path() / "power1_cap");
    std::string line;
    if (!std::getline(file, line)) continue;
    if (const auto microwatts = leading_number(line); microwatts && *microwatts > 0)
      return std::to_string(*microwatts / 1'000'000) + " W";
  }
  return "";
}

}  // namespace

std::string clocks_in(const fs::path& folder) {
  std::string text = states_text(folder / "pp_dpm_sclk");
  const auto add = [&text](const char* what, const std::string& figure) {
    if (!figure.empty()) text += (text.empty() ? "" : ", ") + std::string(what) + figure;
  };
  add("memory ", states_text(folder / "pp_dpm_mclk"));
  add("power cap ", power_cap_text(folder));
  return text;
}

std::string device_clocks(const DeviceChoice& device) {
  if (device.kind != DeviceKind::hip) return "";
  const std::string bus_id = kernels::gpu::hip_bus_id(device.index);
  return bus_id.empty() ? "" : clocks_in(fs::path("/sys/bus/pci/devices") / bus_id);
}

}  // namespace dculab::engine
