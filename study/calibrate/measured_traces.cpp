#include "study/calibrate/measured_traces.hpp"

#include <optional>
#include <utility>

#include "config/results_archive.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "files/gzip.hpp"
#include "files/input.hpp"
#include "files/tar.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::string unpacked_text(const std::string& file) {
  return files::unpacked(file, files::read_text(file, files::kLargestText), files::kLargestText);
}

// What a name alone does not tell: a download that broke off, or another file.
[[nodiscard]] std::string measured_text(const std::string& file) {
  std::string text = unpacked_text(file);
  const std::size_t begin = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");  // the last three mark UTF-8
  if (!files::is_tar(text) && (begin == std::string::npos || text[begin] != '{'))
    throw InputError(file, "is no tar archive and no trace; give what scripts/gpu-validate packed, or a trace");
  return text;
}

void move_traces(const std::string& file, std::vector<Trace>& from, std::vector<MeasuredTrace>& to) {
  for (Trace& trace : from) to.push_back({file, std::move(trace)});
}

}  // namespace

std::vector<MeasuredTrace> read_traces(const std::vector<std::string>& files, TraceUse use) {
  std::vector<MeasuredTrace> traces;
  for (const std::string& file : files) {
    const std::string text = measured_text(file);
    if (!files::is_tar(text)) {
      traces.push_back({file, config::read_trace(file, text)});
      continue;
    }
    config::ResultsArchive archive = config::read_results_archive(file, text);
    if (use == TraceUse::fit && archive.traces.empty())
      throw InputError(file, "has traces of other formats and families only, to which no machine is fitted");
    move_traces(file, archive.traces, traces);
    if (use == TraceUse::compare) move_traces(file, archive.others, traces);
  }
  return traces;
}

sim::Machine machine_of_traces(const std::string& name, const std::vector<std::string>& files) {
  if (!name.empty()) return resolve_machine(name);
  if (files.size() == 1)
    if (const std::string text = measured_text(files.front()); files::is_tar(text)) {
      std::optional<sim::Machine> machine = config::read_results_archive(files.front(), text).machine;
      if (!machine) throw InputError(files.front(), "has no machine.yaml; give --machine M");
      return std::move(*machine);
    }
  throw InputError("--machine: name the machine on which these traces were taken");
}

}  // namespace dculab::study
