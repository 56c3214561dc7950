#include "config/profile/profile_columns.hpp"

#include <algorithm>
#include <array>

namespace dculab::config {
namespace {

using Names = std::array<std::string_view, 5>;  // synonyms; unused places are empty

// Sources of the names: docs/reference/import.md.
struct Layout {
  Profiler profiler;
  Names name, begin, end, duration, device, kind;
  Names own;  // one of these tells the table from that of another profiler; none: any table will do
  std::string_view how_to_record;
};

constexpr std::array<Layout, 5> kLayouts{{
    {.profiler = Profiler::nsys,
     .name = {"Name"},
     .begin = {"Start"},
     .end = {},
     .duration = {"Duration"},
     .device = {"Device"},
     .kind = {},
     .own = {},
     .how_to_record = "nsys stats --report cuda_gpu_trace --format csv REPORT.nsys-rep"},
    {.profiler = Profiler::rocprofv3,
     .name = {"Kernel_Name"},
     .begin = {"Start_Timestamp"},
     .end = {"End_Timestamp"},
     .duration = {},
     .device = {"Agent_Id"},
     .kind = {"Kind"},
     .own = {"Kind"},
     .how_to_record = "rocprofv3 --kernel-trace -- PROGRAM, and give the *_results.db"},
    {.profiler = Profiler::rocprof,
     .name = {"KernelName", "Kernel_Name"},  // rocprof 1, rocprof 2
     .begin = {"BeginNs", "Start_Timestamp"},
     .end = {"EndNs", "End_Timestamp"},
     .duration = {},
     .device = {"gpu-id", "GPU_ID"},
     .kind = {},
     .own = {"gpu-id", "GPU_ID"},
     .how_to_record = "rocprof --timestamp on -o results.csv PROGRAM"},
    {.profiler = Profiler::hipprof,
     .name = {"KernelName", "Kernel_Name", "kernel_name", "STR_NAME", "Name"},
     .begin = {"BeginNs", "Begin_Ns", "StartNs", "Start_Timestamp"},
     .end = {"EndNs", "End_Ns", "StopNs", "End_Timestamp"},
     .duration = {},
     .device = {"dev_id", "devId", "gpu-id", "GPU_ID"},
     .kind = {},
     .own = {},
     .how_to_record = "hipprof --hip-trace --output-type 0 -o run PROGRAM, and give run.json"},
    {.profiler = Profiler::pytorch,  // writes no table
     .name = {},
     .begin = {},
     .end = {},
     .duration = {},
     .device = {},
     .kind = {},
     .own = {},
     .how_to_record = "torch.profiler's export_chrome_trace, which vLLM and SGLang do while their profiler is on"},
}};

constexpr std::array<std::string_view, 4> kSummaryColumns{"TotalDurationNs", "Total Time (ns)", "Instances", "Calls"};

// "Start (ns)" -> "Start"
std::string_view without_unit(std::string_view cell) { return cell.substr(0, cell.find(" (")); }

// ns in the unit that a column's name ends in; 1 where it names none.
double unit_ns(std::string_view cell) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
      {{"(ns)", 1}, {"(us)", 1e3}, {"(ms)", 1e6}, {"(s)", 1e9}}};
  for (const auto& [unit, nanoseconds] : kUnits)
    if (cell.ends_with(unit)) return nanoseconds;
  return 1;
}

std::optional<std::size_t> find(std::span<const std::string> cells, const Names& names) {
  for (const std::string_view wanted : names) {
    if (wanted.empty()) continue;
    const auto cell =
        std::find_if(cells.begin(), cells.end(), [&](const std::string& each) { return without_unit(each) == wanted; });
    if (cell != cells.end()) return static_cast<std::size_t>(cell - cells.begin());
  }
  return std::nullopt;
}

std::optional<ProfileColumns> match(std::span<const std::string> cells, const Layout& layout) {
  const auto name = find(cells, layout.name);
  const auto begin = find(cells, layout.begin);
  ProfileColumns columns;
  columns.end = find(cells, layout.end);
  columns.duration = find(cells, layout.duration);
  if (!name || !begin || (!columns.end && !columns.duration)) return std::nullopt;
  columns.profiler = layout.profiler;
  columns.count = cells.size();
  columns.name = *name;
  columns.begin = *begin;
  columns.device = find(cells, layout.device);
  columns.kind = find(cells, layout.kind);
  columns.begin_unit_ns = unit_ns(cells[*begin]);
  if (columns.duration) columns.duration_unit_ns = unit_ns(cells[*columns.duration]);
  return columns;
}

const Layout& layout_of(Profiler profiler) {
  return *std::find_if(kLayouts.begin(), kLayouts.end(),
                       [profiler](const Layout& layout) { return layout.profiler == profiler; });
}

std::string listed(const Names& names) {
  std::string text;
  for (const std::string_view each : names)
    if (!each.empty()) text.append(text.empty() ? "" : "|").append(each);
  return text;
}

}  // namespace

std::optional<ProfileColumns> find_columns(std::span<const std::string> cells, Profiler profiler) {
  if (profiler != Profiler::automatic) return match(cells, layout_of(profiler));
  for (const Layout& layout : kLayouts)
    if (layout.own.front().empty() || find(cells, layout.own))
      if (const auto columns = match(cells, layout)) return columns;
  return std::nullopt;
}

bool begins_summary(std::span<const std::string> cells) {
  const auto is_one = [](const std::string& cell) {
    return std::find(kSummaryColumns.begin(), kSummaryColumns.end(), cell) != kSummaryColumns.end();
  };
  return std::count_if(cells.begin(), cells.end(), is_one) >= 2;
}

std::string wanted_columns(Profiler profiler) {
  const Layout& layout = layout_of(profiler);
  return listed(layout.name) + ", " + listed(layout.begin) + " and " +
         listed(layout.end.front().empty() ? layout.duration : layout.end);
}

std::string_view how_to_record(Profiler profiler) { return layout_of(profiler).how_to_record; }

}  // namespace dculab::config
