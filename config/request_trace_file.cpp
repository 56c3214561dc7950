#include "config/request_trace_file.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>
#include <optional>
#include <span>

#include "config/csv_rows.hpp"
#include "config/json_documents.hpp"
#include "config/map_reader.hpp"
#include "config/workload_reader.hpp"
#include "fields/printable_text.hpp"
#include "files/gzip.hpp"
#include "files/input.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestRequestTrace = 256 << 20;
constexpr double kLatest = 1e12;  // s
constexpr int kMooncakeBlock = 512, kBailianBlock = 16;

// A row as a request, or nothing for one that was not answered.
using ReadRow = std::optional<RecordedRequest> (*)(const Node& row, ProblemList& problems);

void read_tokens(MapReader& reader, const char* prompt, const char* output, RecordedRequest& request) {
  reader.required(prompt, request.prompt_tokens, between(1, kLongestContext));
  reader.required(output, request.output_tokens, between(1, kLongestContext));
}

std::optional<RecordedRequest> read_vidur(const Node& row, ProblemList& problems) {
  RecordedRequest request;
  MapReader reader(&row, "", problems);
  double arrived_at = 0;
  reader.required("arrived_at", arrived_at, between(0, kLatest));
  read_tokens(reader, "num_prefill_tokens", "num_decode_tokens", request);
  reader.optional("prompt_id", request.prompt_id, between(0, 0x1p53));
  request.arrival = Seconds(arrived_at);
  reader.finish();
  return request;
}

// "2023-11-16 18:17:03.9799600", or with "+00:00" behind it, as s since 1970; nothing for what is no such time.
std::optional<Seconds> time_of_day(std::string_view text) {
  const auto digits = [&text](std::size_t at, std::size_t count) {
    int value = -1;
    const std::string_view piece = at < text.size() ? text.substr(at, count) : "";
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), value);
    return error == std::errc() && end == piece.data() + piece.size() && piece.size() == count ? value : -1;
  };
  const int year = digits(0, 4), month = digits(5, 2), day = digits(8, 2);
  const int hour = digits(11, 2), minute = digits(14, 2), second = digits(17, 2);
  if (year < 0 || hour < 0 || minute < 0 || second < 0) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (month < 1 || day < 1 || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  double fraction = 0, unit = 0.1;
  for (std::size_t at = 20; text.size() > 19 && text[19] == '.' && at < text.size(); ++at, unit /= 10) {
    if (text[at] < '0' || text[at] > '9') break;
    fraction += unit * (text[at] - '0');
  }
  return Seconds(86400.0 * static_cast<double>(days) + 3600 * hour + 60 * minute + second + fraction);
}

// A request that failed has no answer, and is left out.
bool is_zero(const Node* answer) { return answer != nullptr && (answer->text == "0" || answer->text == "0.0"); }

std::optional<RecordedRequest> read_azure(const Node& row, ProblemList& problems) {
  RecordedRequest request;
  MapReader reader(&row, "", problems);
  const Node* time = reader.required("TIMESTAMP");
  if (time != nullptr) {
    if (const auto arrival = time_of_day(time->text))
      request.arrival = *arrival;
    else
      problems.add(*time, "TIMESTAMP: " + in_quotes(time->text) + " is no date and time: 2023-11-16 18:17:03.97");
  }
  if (is_zero(reader.required("GeneratedTokens"))) return std::nullopt;
  read_tokens(reader, "ContextTokens", "GeneratedTokens", request);
  return request;
}

std::optional<RecordedRequest> read_burst_gpt(const Node& row, ProblemList& problems) {
  RecordedRequest request;
  MapReader reader(&row, "", problems);
  double time = 0;
  reader.required("Timestamp", time, between(0, kLatest));
  request.arrival = Seconds(time);
  if (is_zero(reader.required("Response tokens"))) return std::nullopt;
  read_tokens(reader, "Request tokens", "Response tokens", request);
  return request;
}

RecordedRequest read_hashed(const Node& row, double unit, int block_tokens, ProblemList& problems) {
  RecordedRequest request{.block_tokens = block_tokens};
  MapReader reader(&row, "", problems);
  double time = 0;
  reader.required("timestamp", time, between(0, kLatest / unit));
  request.arrival = Seconds(time * unit);
  read_tokens(reader, "input_length", "output_length", request);
  reader.optional("hash_ids", request.block_ids, between(0, 0x1p53));
  const auto covered = static_cast<std::int64_t>(request.block_ids.size()) * block_tokens;
  if (!request.block_ids.empty() && covered < request.prompt_tokens)
    problems.add(row, "hash_ids: " + std::to_string(request.block_ids.size()) + " blocks of " +
                          std::to_string(block_tokens) + " tokens hold less than input_length");
  return request;
}

std::optional<RecordedRequest> read_mooncake(const Node& row, ProblemList& problems) {
  return read_hashed(row, 1e-3, kMooncakeBlock, problems);
}

std::optional<RecordedRequest> read_bailian(const Node& row, ProblemList& problems) {
  return read_hashed(row, 1, kBailianBlock, problems);
}

// Every row of a file has the form of its first one.
ReadRow reader_of(const std::vector<std::string_view>& names) {
  const auto has = [&names](std::string_view name) { return std::ranges::count(names, name) > 0; };
  if (has("TIMESTAMP")) return read_azure;
  if (has("Timestamp")) return read_burst_gpt;
  if (has("input_length")) return has("chat_id") ? read_bailian : read_mooncake;
  return read_vidur;
}

}  // namespace

std::vector<RecordedRequest> read_request_trace(const std::string& file, const std::string& text) {
  ProblemList problems(file);
  const bool is_json = text.find_first_not_of(" \t\r\n") == text.find('{') && text.find('{') != std::string::npos;
  const std::vector<Node> rows = is_json ? json_documents(file, text) : csv_rows(file, text, problems);
  std::vector<std::string_view> names;
  if (!rows.empty())
    for (const Node& cell : rows.front().children) names.emplace_back(cell.key);
  const ReadRow read = reader_of(names);
  std::vector<RecordedRequest> requests;
  for (const Node& row : rows)
    if (auto request = read(row, problems)) requests.push_back(*std::move(request));
  problems.throw_if_any();
  if (requests.empty()) throw InputError(file, "has no requests");
  std::ranges::stable_sort(requests, {}, &RecordedRequest::arrival);
  if (read != read_vidur) {
    const Seconds first = requests.front().arrival;
    for (RecordedRequest& request : requests) request.arrival -= first;
  }
  return requests;
}

std::vector<RecordedRequest> read_request_trace_file(const std::string& path) {
  return read_request_trace(path,
                            files::unpacked(path, files::read_text(path, kLargestRequestTrace), kLargestRequestTrace));
}

}  // namespace dculab::config
