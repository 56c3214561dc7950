#include "config/request_trace_file.hpp"

#include <algorithm>

#include "config/csv_rows.hpp"
#include "config/map_reader.hpp"
#include "config/workload_reader.hpp"
#include "files/input.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestRequestTrace = 256 << 20;

RecordedRequest read_request(const Node& node, ProblemList& problems) {
  RecordedRequest request;
  MapReader reader(&node, "", problems);
  double arrived_at = 0;
  reader.required("arrived_at", arrived_at, between(0, 1e12));
  reader.required("num_prefill_tokens", request.prompt_tokens, between(1, kLongestContext));
  reader.required("num_decode_tokens", request.output_tokens, between(1, kLongestContext));
  reader.optional("prompt_id", request.prompt_id, between(0, 0x1p53));
  request.arrival = Seconds(arrived_at);
  reader.finish();
  return request;
}

}  // namespace

std::vector<RecordedRequest> read_request_trace(const std::string& file, const std::string& text) {
  ProblemList problems(file);
  std::vector<RecordedRequest> requests;
  for (const Node& row : csv_rows(file, text, problems)) requests.push_back(read_request(row, problems));
  problems.throw_if_any();
  if (requests.empty()) throw InputError(file, "has no requests");
  std::ranges::stable_sort(requests, {}, &RecordedRequest::arrival);
  return requests;
}

std::vector<RecordedRequest> read_request_trace_file(const std::string& path) {
  return read_request_trace(path, files::read_text(path, kLargestRequestTrace));
}

}  // namespace dculab::config
