#include "config/profile/trace_events.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "fields/json_text.hpp"

namespace dculab::config {
namespace {

// hipprof writes times as texts of digits; a whole number is taken as well.
std::int64_t read_time(const Node& arguments, const char* key) {
  const Node* found = arguments.find(key);
  std::int64_t time = -1;
  if (found != nullptr && (found->is(ScalarType::integer) || found->is(ScalarType::text))) {
    const std::string& text = found->text;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time);
    if (error != std::errc() || end != text.data() + text.size()) time = -1;
  }
  if (time < 0) throw InputError(std::string(key) + " is no time in ns; export the trace again");
  return time;
}

std::string text_of(const Node& object, const char* key) {
  const Node* found = object.find(key);
  if (found == nullptr) return "";
  return found->kind == NodeKind::scalar ? found->text : json_text(*found);
}

KernelRecord read_hipprof_event(const Node& event) {
  const Node* arguments = event.find("args");
  if (arguments == nullptr || arguments->kind != NodeKind::map) throw InputError("no args; export the trace again");
  KernelRecord kernel;
  kernel.name = text_of(*arguments, "name");
  if (kernel.name.empty()) kernel.name = text_of(event, "name");
  kernel.device = text_of(*arguments, "devId");
  kernel.begin_ns = read_time(*arguments, "BeginNs");
  kernel.end_ns = read_time(*arguments, "EndNs");
  return kernel;
}

// "4817571379325.573" us as ns, without the rounding of a double.
std::int64_t read_microseconds(const Node& event, const char* key) {
  const Node* found = event.find(key);
  const std::string text = found == nullptr ? "" : found->text;
  std::int64_t whole = 0;
  const char* const last = text.data() + text.size();
  const auto [point, error] = std::from_chars(text.data(), last, whole);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4000;
  if (error != std::errc() || whole < 0 || whole > kMost)
    throw InputError(std::string(key) + " is no time in us; export the trace again");
  std::int64_t nanoseconds = 1000 * whole, unit = 100;
  if (point == last) return nanoseconds;
  if (*point != '.') throw InputError(std::string(key) + " is no time in us; export the trace again");
  for (const char* digit = point + 1; digit != last; ++digit, unit /= 10) {
    if (*digit < '0' || *digit > '9') throw InputError(std::string(key) + " is no time in us; export the trace again");
    nanoseconds += unit * (*digit - '0');
  }
  return nanoseconds;
}

KernelRecord read_pytorch_event(const Node& event) {
  KernelRecord kernel;
  kernel.name = text_of(event, "name");
  if (const Node* arguments = event.find("args")) kernel.device = text_of(*arguments, "device");
  kernel.begin_ns = read_microseconds(event, "ts");
  kernel.end_ns = kernel.begin_ns + read_microseconds(event, "dur");
  return kernel;
}

// The kernel or copy that an event is, if it is one.
std::optional<KernelRecord> kernel_of(const Node& event, Profiler& profiler) {
  const std::string category = text_of(event, "ph") == "X" ? text_of(event, "cat") : "";
  std::optional<KernelRecord> kernel;
  if (category == "HIPOPS" || category == "HIPCOPY") kernel = read_hipprof_event(event);
  if (category == "HIPCOPY") kernel->name = "hipMemcpy " + kernel->name;
  if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
    kernel = read_pytorch_event(event);
    profiler = Profiler::pytorch;
  }
  if (!kernel) return kernel;
  if (kernel->name.empty()) throw InputError("the kernel has no name; export the trace again");
  if (kernel->end_ns < kernel->begin_ns)
    throw InputError("the kernel ends before it begins; the profiler lost its clock, record again");
  return kernel;
}

}  // namespace

bool is_json(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  if (!text.starts_with('[')) return text.starts_with('{');
  const std::size_t second = text.find_first_not_of(kSpace, 1);
  return second != std::string_view::npos && text[second] == '{';
}

TraceEvents read_trace_events(const std::string& file, const std::string& text) {
  constexpr const char* kEvents = "traceEvents";
  TraceEvents events;
  std::size_t index = 0;
  const auto visit = [&](const Node& event) {
    try {
      if (auto kernel = kernel_of(event, events.profiler)) events.kernels.push_back(std::move(*kernel));
      ++index;
    } catch (const InputError& error) {
      throw InputError(file, "traceEvents[" + std::to_string(index) + "]: " + error.what());
    }
  };
  const bool is_list = text.find('[') < text.find('{');
  try {
    const Node root = read_json_items(file, one_piece(text), {.member = is_list ? "" : kEvents}, visit);
    const Node* list = is_list ? &root : root.find(kEvents);
    if (list != nullptr && list->kind == NodeKind::list) return events;
  } catch (const JsonSyntaxError& error) {
    throw InputError(std::string(error.what()) + "; a run that was stopped leaves half a file: record again");
  }
  throw InputError(file,
                   "no traceEvents (it is no trace of hipprof or PyTorch's profiler); record with hipprof --hip-trace "
                   "--output-type 0, or export_chrome_trace");
}

}  // namespace dculab::config
