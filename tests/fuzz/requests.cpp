// Recorded requests as CSV: a workload takes them as they are.
#include <string>

#include "config/request_trace_file.hpp"
#include "core/workload.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

std::string requests_csv(const std::vector<RecordedRequest>& requests) {
  std::string text = "arrived_at,num_prefill_tokens,num_decode_tokens,prompt_id";
  for (const RecordedRequest& request : requests)
    text += "\n" + csv_cell(request.arrival.value()) + "," + std::to_string(request.prompt_tokens) + "," +
            std::to_string(request.output_tokens) + "," +
            (request.prompt_id < 0 ? "" : std::to_string(request.prompt_id));
  return text;
}

// A prompt is drawn token by token: a few short ones will do.
void replay_first(const std::vector<RecordedRequest>& requests) {
  constexpr std::size_t kMostRequests = 4, kMostTokens = 1 << 12;
  RequestWorkload workload;
  for (const RecordedRequest& each : requests)
    if (workload.recorded.size() < kMostRequests && static_cast<std::size_t>(each.prompt_tokens) <= kMostTokens)
      workload.recorded.push_back(each);
  if (workload.recorded.empty()) return;
  workload.requests = static_cast<int>(workload.recorded.size());
  workload.arrival = ArrivalKind::replay;
  require(problems(workload).empty(), "recorded requests make a workload");
  RequestSource source(workload);
  for (const RecordedRequest& each : workload.recorded) {
    const auto request = source.next();
    require(request.has_value(), "every request is replayed");
    require(request->prompt_token_ids.size() == static_cast<std::size_t>(each.prompt_tokens),
            "a prompt has its length");
  }
}

}  // namespace

void read_requests_csv(std::string_view input) {
  const auto requests = config::read_request_trace("fuzz.csv", std::string(input));
  require(!requests.empty(), "there are requests");
  for (std::size_t index = 1; index < requests.size(); ++index)
    require(requests[index - 1].arrival <= requests[index].arrival, "requests are in order of arrival");
  const std::string text = requests_csv(requests);
  require(requests_csv(read_back([&] { return config::read_request_trace("again.csv", text); })) == text,
          "requests are read back as written");
  replay_first(requests);
}

}  // namespace dculab::fuzz
