// Traces as JSON Lines: a header with `schema: dculab/trace/2`, then one measured step per line. Those of
// dculab/trace/1 are read as well.
#pragma once

#include <string>
#include <string_view>

#include "model/trace.hpp"

namespace dculab::config {

inline constexpr std::string_view kTraceSchema = "dculab/trace/2";

[[nodiscard]] std::string trace_json_lines(const Trace& trace);

// Throws InputError naming the line. Sequence ids are numbered from 0: a trace keeps the lengths of a batch only.
[[nodiscard]] Trace read_trace(const std::string& file, const std::string& text);
// A file may be packed by gzip.
[[nodiscard]] Trace read_trace_file(const std::string& path);

}  // namespace dculab::config
