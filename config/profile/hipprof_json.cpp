#include "config/profile/hipprof_json.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace dculab::config {
namespace {

using Json = nlohmann::json;

// hipprof writes times as texts of digits; a whole number is taken as well.
std::int64_t read_time(const Json& arguments, const char* key) {
  const auto found = arguments.find(key);
  std::int64_t time = -1;
  if (found != arguments.end() && found->is_number_integer()) {
    time = found->get<std::int64_t>();
  } else if (found != arguments.end() && found->is_string()) {
    const std::string& text = found->get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time);
    if (error != std::errc() || end != text.data() + text.size()) time = -1;
  }
  if (time < 0) throw InputError(std::string(key) + " is no time in ns; export the trace again");
  return time;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

KernelRecord read_event(const Json& event) {
  const auto arguments = event.find("args");
  if (arguments == event.end() || !arguments->is_object()) throw InputError("no args; export the trace again");
  KernelRecord kernel;
  kernel.name = text_of(*arguments, "name");
  if (kernel.name.empty()) kernel.name = text_of(event, "name");
  if (kernel.name.empty()) throw InputError("the kernel has no name; export the trace again");
  kernel.device = text_of(*arguments, "devId");
  kernel.begin_ns = read_time(*arguments, "BeginNs");
  kernel.end_ns = read_time(*arguments, "EndNs");
  if (kernel.end_ns < kernel.begin_ns)
    throw InputError("the kernel ends before it begins; the profiler lost its clock, record again");
  return kernel;
}

Json parse(const std::string& file, const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw InputError(file, "not valid JSON at byte " + std::to_string(error.byte) +
                               " (a run that was stopped leaves half a file); record again");
  }
}

}  // namespace

bool is_hipprof_json(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  if (!text.starts_with('[')) return text.starts_with('{');
  const std::size_t second = text.find_first_not_of(kSpace, 1);
  return second != std::string_view::npos && text[second] == '{';
}

std::vector<KernelRecord> read_hipprof_json(const std::string& file, const std::string& text) {
  const Json document = parse(file, text);
  const Json* events = &document;
  if (document.is_object()) {
    const auto found = document.find("traceEvents");
    if (found == document.end() || !found->is_array())
      throw InputError(file,
                       "no traceEvents (it is not a trace of hipprof); record with hipprof --hip-trace "
                       "--output-type 0");
    events = &*found;
  }
  std::vector<KernelRecord> kernels;
  for (std::size_t index = 0; index < events->size(); ++index) {
    const Json& event = (*events)[index];
    const bool is_slice = event.is_object() && text_of(event, "ph") == "X";
    const std::string category = is_slice ? text_of(event, "cat") : "";
    if (category != "HIPOPS" && category != "HIPCOPY") continue;
    try {
      kernels.push_back(read_event(event));
      if (category == "HIPCOPY") kernels.back().name = "hipMemcpy " + kernels.back().name;
    } catch (const InputError& error) {
      throw InputError(file, "traceEvents[" + std::to_string(index) + "]: " + error.what());
    }
  }
  return kernels;
}

}  // namespace dculab::config
