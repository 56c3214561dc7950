#include "study/calibrate/recorded_device.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

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

[[nodiscard]] bool has_digit(const std::string& word) {
  return std::ranges::any_of(word, [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

// Of the device's words those that shipped machines are called by: h200, mi210, k100. Words without a digit (radeon)
// say too little.
[[nodiscard]] Words shipped_words(const Words& device) {
  Words words;
  for (const std::string& name : machine_names()) {
    const std::string word = device_words(name).front();
    if (has_digit(word) && has(device, word)) words.push_back(word);
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

[[nodiscard]] bool is_emulated(const TraceHeader& header) { return header.device.starts_with(kEmulated); }

[[nodiscard]] bool is_other(const TraceHeader& header, const sim::Machine& machine) {
  if (is_emulated(header)) return true;
  return header.threads > 0 ? machine.kind == lower::DeviceKind::gpu : is_other_gpu(header.device, machine);
}

// "recorded on NVIDIA H200, which is not mi210".
[[nodiscard]] std::string where_recorded(const TraceHeader& header, const sim::Machine& machine) {
  if (is_emulated(header)) return "recorded by a host that plays a GPU (" + header.device + ")";
  return "recorded on " + (header.device.empty() ? "a CPU" : header.device) + ", which is not " + machine.name;
}

[[nodiscard]] std::string warning_of(const TraceHeader& header, const sim::Machine& machine) {
  return where_recorded(header, machine) + ": the times say nothing of " +
         (is_emulated(header) ? machine.name : "how good its predictions are");
}

// The shipped machine of whose name the device says most, and of several the shortest name; empty where it says none.
[[nodiscard]] std::string shipped_machine(const std::string& device) {
  const Words said = device_words(device), known = shipped_words(said);
  std::pair<std::ptrdiff_t, std::size_t> least{};
  std::string found;
  for (const std::string& name : machine_names()) {
    const Words words = device_words(name);
    if (!has(known, words.front())) continue;
    const std::pair rank(-words_said(words, said), words.size());
    if (!found.empty() && rank >= least) continue;
    least = rank;
    found = name;
  }
  return found;
}

[[nodiscard]] std::string advice_of(const TraceHeader& header) {
  if (is_emulated(header)) return "record on a GPU, with `dculab bench --device hip:N --trace FILE` or cuda:N";
  const std::string shipped = header.threads > 0 ? "" : shipped_machine(header.device);
  const std::string device = header.threads > 0 ? "" : "--device hip:N|cuda:N ";
  return "give --machine " + (shipped.empty() ? "" : shipped + ", or ") + "the file that `dculab probe " + device +
         "--machine-file FILE` writes there";
}

[[nodiscard]] std::string whole_advice(const TraceHeader& header, const sim::Machine& machine) {
  return "they were " + where_recorded(header, machine) + ": " + advice_of(header);
}

// What is said of each other device, once.
template <typename Said>
[[nodiscard]] Words said_of_others(const std::vector<MeasuredTrace>& traces, const sim::Machine& machine, Said said) {
  Words texts;
  for (const MeasuredTrace& each : traces) {
    if (!is_other(each.trace.header, machine)) continue;
    std::string text = said(each.trace.header, machine);
    if (!has(texts, text)) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

bool is_unnamed(const std::string& device, const sim::Machine& machine) {
  const Words own = device_words(machine.name + " " + machine.description + " " + machine.isa);
  bool says_one = false;
  for (const std::string& word : device_words(device)) {
    if (!has_digit(word)) continue;
    if (has(own, word)) return false;
    says_one = true;
  }
  return says_one;
}

std::vector<std::string> other_devices(const std::vector<MeasuredTrace>& traces, const sim::Machine& machine) {
  return said_of_others(traces, machine, warning_of);
}

std::string advice_on_devices(const std::vector<MeasuredTrace>& traces, const sim::Machine& machine) {
  std::string advice;
  for (const std::string& each : said_of_others(traces, machine, whole_advice))
    advice += (advice.empty() ? "" : "; ") + each;
  return advice;
}

std::string emulated_device(const std::vector<MeasuredTrace>& traces) {
  for (const MeasuredTrace& each : traces)
    if (is_emulated(each.trace.header)) return each.trace.header.device;
  return "";
}

}  // namespace dculab::study
