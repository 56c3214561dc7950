// Requests that arrive over time: when, and how many tokens they have. Drawn one by one from a seed, the same ones for
// the engine and for the simulator.
//
//   all_at_once   every request at 0
//   gamma         gaps of mean 1 / requests_per_second with the shape `burstiness`: 1 is a Poisson process, smaller is
//                 burstier (vLLM's --request-rate and --burstiness)
//   replay        when somebody recorded them
//
// With max_concurrency, a request that has arrived is sent once fewer than that are being served: its arrival is then
// (vLLM's --max-concurrency, whose clients measure from there).
//
// Lengths are drawn from distributions, or those that were recorded. Times, lengths and tokens have a random stream
// each: to change how requests arrive changes nothing else about them.
//
// A prompt is random tokens, which no other has, after `prefix_tokens` that all prompts of its prefix share. A share of
// the requests may ask what the one before them asks, and prompts may be padded to one length, as programs do that take
// batches of equal lengths.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "core/request.hpp"
#include "core/units.hpp"

namespace dculab {

enum class LengthKind : std::uint8_t { fixed, uniform, exponential, lognormal };

// In tokens. Draws are rounded and kept within [least, most].
struct LengthDistribution {
  LengthKind kind = LengthKind::fixed;
  double center = 1;  // fixed: every length; exponential: the mean; lognormal: the median
  double sigma = 0;   // lognormal: of the logarithm
  int least = 1;
  int most = kLongestContext;
};

enum class ArrivalKind : std::uint8_t { all_at_once, gamma, replay };

// One line of a recorded trace.
struct RecordedRequest {
  Seconds arrival{};  // ascending
  int prompt_tokens = 1;
  int output_tokens = 1;
  std::int64_t prompt_id = -1;  // requests of one id have the same prompt, as far as the shorter goes; -1: its own
  // Or the prompt's blocks of `block_tokens` tokens, the last one perhaps shorter: those of one id are the same.
  std::vector<std::int64_t> block_ids{};
  int block_tokens = 0;
};

// Pad tokens in front of prompts that are shorter.
enum class PadTo : std::uint8_t { nothing, longest, length };
struct PromptPadding {
  PadTo to = PadTo::nothing;
  int tokens = 0;        // PadTo::length
  bool skipped = false;  // by who serves them (KvSkip): requests come without them, and say how many there were
};
inline constexpr TokenId kPadToken = 0;  // no other token of a workload with padding is this one

struct RequestWorkload {
  int requests = 1;
  LengthDistribution prompt{};
  LengthDistribution output{};
  ArrivalKind arrival = ArrivalKind::all_at_once;
  double requests_per_second = 1;        // gamma
  double burstiness = 1;                 // gamma
  std::optional<int> max_concurrency{};  // requests that are served at once, at most
  int prefix_tokens = 0;                 // of each prompt, which is longer
  int prefixes = 1;                      // different ones, taken in turn
  double duplicate_prompts = 0;          // share of the requests that have the prompt of the one before them
  PromptPadding padding{};
  int vocab_size = 32000;     // tokens are below
  SamplingParams sampling{};  // of every request; each has a seed of its own, counted from this one
  std::uint64_t seed = 1;
  std::vector<RecordedRequest> recorded{};  // if any, the first `requests` have these lengths; replay: also these times
};

// Everything that makes the workload unusable; empty when it is sound.
[[nodiscard]] std::vector<std::string> problems(const RequestWorkload& workload);

// The prompts of all requests that wait or run are in memory. Throws InputError when `next` would be one too many
// beside `requests` of them with `tokens` tokens in all.
void require_room_for(const Request& next, std::int64_t requests, std::int64_t tokens);

class RequestSource {
 public:
  // Precondition: problems(workload) is empty.
  explicit RequestSource(RequestWorkload workload);

  // In order of arrival, with ids 0, 1, ...; nothing when all have been given out.
  [[nodiscard]] std::optional<Request> next();

  // The same for who serves them: nothing, too, while max_concurrency of them have not finished.
  [[nodiscard]] std::optional<Request> next_to_serve();
  void finished(Seconds when, int requests = 1);
  [[nodiscard]] bool is_exhausted() const { return given_ == workload_.requests; }

 private:
  [[nodiscard]] RecordedRequest draw();
  [[nodiscard]] std::vector<TokenId> draw_prompt(const RecordedRequest& drawn);
  void repeat(std::vector<TokenId>& prompt);
  void pad(Request& request) const;
  [[nodiscard]] int padded_length() const;

  RequestWorkload workload_;
  std::mt19937_64 arrivals_, prompt_lengths_, output_lengths_, tokens_, repeats_;
  int padded_length_ = 0;
  std::vector<TokenId> prompt_before_;  // where some are repeated
  int given_ = 0;
  Seconds now_;
  // Of max_concurrency places, the free ones; the earliest is taken first.
  std::priority_queue<Seconds, std::vector<Seconds>, std::greater<>> free_since_;
};

}  // namespace dculab
