#include "study/calibrate/recorded_device.hpp"

#include <algorithm>
#include <cctype>

#include "study/scenario/device_words.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kEmulated = "host build";  // kernels/gpu/runtime_api.hpp

[[nodiscard]] bool has(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

// "gfx90a"; empty where the driver names none.
[[nodiscard]] std::string architecture_of(const Words& device) {
  const auto isa = std::ranges::find_if(device, [](const std::string& word) { return word.starts_with("gfx"); });
  return isa == device.end() ? "" : *isa;
}

// Of the device's words those that shipped machines are called by: h200, mi210, k100. Words without a digit (radeon)
// say too little.
[[nodiscard]] Words shipped_words(const Words& device) {
  Words words;
  for (const std::string& name : machine_names()) {
    const std::string word = device_words(name).front();
    const bool has_digit = std::ranges::any_of(word, [](unsigned char letter) { return std::isdigit(letter) != 0; });
    if (has_digit && has(device, word)) words.push_back(word);
  }
  return words;
}

[[nodiscard]] bool is_other_gpu(const std::string& name, const sim::Machine& machine) {
  const Words device = device_words(name);
  const std::string isa = architecture_of(device);
  if (!isa.empty() && machine.kind == lower::DeviceKind::gpu && isa != machine.isa) return true;
  const Words said = shipped_words(device), own = device_words(machine.name + " " + machine.description);
  return !said.empty() && std::ranges::none_of(said, [&own](const std::string& word) { return has(own, word); });
}

// Nothing where it may be this machine.
[[nodiscard]] std::string warning_of(const TraceHeader& header, const sim::Machine& machine) {
  const bool is_gpu = machine.kind == lower::DeviceKind::gpu;
  if (header.device.starts_with(kEmulated))
    return "recorded by a host that plays a GPU (" + header.device + "): the times say nothing of " + machine.name;
  const bool is_other = header.threads > 0 ? is_gpu : is_other_gpu(header.device, machine);
  if (!is_other) return "";
  return "recorded on " + (header.device.empty() ? "a CPU" : header.device) + ", which is not " + machine.name +
         ": the times say nothing of how good its predictions are";
}

}  // namespace

std::vector<std::string> other_devices(const std::vector<MeasuredTrace>& traces, const sim::Machine& machine) {
  std::vector<std::string> warnings;
  for (const MeasuredTrace& each : traces) {
    std::string warning = warning_of(each.trace.header, machine);
    if (!warning.empty() && !has(warnings, warning)) warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace dculab::study
