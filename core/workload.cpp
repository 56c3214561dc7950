#include "core/workload.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/error.hpp"

namespace dculab {
namespace {

// The standard library's distributions differ between implementations; its engines do not.

// In (0, 1).
[[nodiscard]] double uniform(std::mt19937_64& random) { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; }

// Box and Muller 1958.
[[nodiscard]] double normal(std::mt19937_64& random) {
  const double radius = std::sqrt(-2 * std::log(uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * uniform(random));
}

// Mean `shape`. G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000.
[[nodiscard]] double gamma(std::mt19937_64& random, double shape) {
  if (shape < 1) {
    const double above_one = gamma(random, shape + 1);
    return above_one * std::pow(uniform(random), 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  for (;;) {
    const double x = normal(random);
    const double root = 1 + x / std::sqrt(9 * d);
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(uniform(random)) < 0.5 * x * x + d * (1 - v + std::log(v))) return d * v;
  }
}

// Prefixes count from kFirstPrefix on, and do not reach the last ones.
enum Stream : std::uint32_t {
  kArrivals,
  kPromptLengths,
  kOutputLengths,
  kTokens,
  kFirstPrefix,
  kRepeats = 0xFFFFFFFE,
  kPrompts = 0xFFFFFFFF
};

[[nodiscard]] std::mt19937_64 stream(std::uint64_t seed, std::uint32_t which) {
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), which};
  return std::mt19937_64(words);
}

// Of the prompt with an id.
[[nodiscard]] std::mt19937_64 prompt_stream(std::uint64_t seed, std::int64_t id) {
  const auto word = static_cast<std::uint64_t>(id);
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(kPrompts), static_cast<std::uint32_t>(word),
                      static_cast<std::uint32_t>(word >> 32)};
  return std::mt19937_64(words);
}

[[nodiscard]] double draw_value(const LengthDistribution& lengths, std::mt19937_64& random) {
  switch (lengths.kind) {
    case LengthKind::fixed:
      return lengths.center;
    case LengthKind::uniform:
      return std::floor(lengths.least + uniform(random) * (static_cast<double>(lengths.most) - lengths.least + 1));
    case LengthKind::exponential:
      return -lengths.center * std::log(uniform(random));
    case LengthKind::lognormal:
      return lengths.center * std::exp(lengths.sigma * normal(random));
  }
  return lengths.center;
}

// Of requests that wait or run at once.
constexpr std::int64_t kMostRequests = 1 << 22;
constexpr std::int64_t kMostTokens = 1 << 28;

[[nodiscard]] int draw_length(const LengthDistribution& lengths, std::mt19937_64& random) {
  return static_cast<int>(std::clamp<double>(std::round(draw_value(lengths, random)), lengths.least, lengths.most));
}

void add_length_problems(const LengthDistribution& lengths, const std::string& what, std::vector<std::string>& found) {
  if (lengths.least < 1) found.push_back(what + ": a request has at least 1 token");
  if (lengths.least > lengths.most)
    found.push_back(what + ": min (" + std::to_string(lengths.least) + ") is above max (" +
                    std::to_string(lengths.most) + ")");
  if (lengths.kind != LengthKind::uniform && !(lengths.center >= 1))
    found.push_back(what + ": must be at least 1 token");
  if (lengths.kind == LengthKind::lognormal && !(lengths.sigma >= 0)) found.push_back(what + ": sigma is negative");
}

}  // namespace

std::vector<std::string> problems(const RequestWorkload& workload) {
  std::vector<std::string> found;
  if (workload.requests < 1) found.emplace_back("requests: must be at least 1");
  add_length_problems(workload.prompt, "prompt_tokens", found);
  add_length_problems(workload.output, "output_tokens", found);
  // Known before a prompt is made; the others are counted as they come.
  if (workload.arrival == ArrivalKind::all_at_once && workload.requests > kMostRequests)
    found.push_back("requests: at most " + std::to_string(kMostRequests) + " can come at once");
  else if (workload.arrival == ArrivalKind::all_at_once &&
           std::int64_t{workload.requests} * workload.prompt.least > kMostTokens)
    found.push_back("requests: their prompts have more than " + std::to_string(kMostTokens) +
                    " tokens, and would all wait at once");
  const bool gamma_gaps = workload.arrival == ArrivalKind::gamma;
  if (gamma_gaps && !(workload.requests_per_second > 0)) found.emplace_back("requests_per_second: must be above 0");
  if (gamma_gaps && !(workload.burstiness > 0)) found.emplace_back("burstiness: must be above 0");
  if (workload.max_concurrency && *workload.max_concurrency < 1)
    found.emplace_back("max_concurrency: must be at least 1");
  if (workload.prefix_tokens < 0) found.emplace_back("prefix_tokens: must not be negative");
  if (workload.prefixes < 1) found.emplace_back("prefixes: must be at least 1");
  if (!(workload.duplicate_prompts >= 0 && workload.duplicate_prompts <= 1))
    found.emplace_back("duplicate_prompts: must be a share, at least 0 and at most 1");
  if (workload.padding.to == PadTo::length && workload.padding.tokens < 1)
    found.emplace_back("pad_to: must be at least 1 token");
  if (workload.vocab_size < 2) found.emplace_back("vocab_size: must be at least 2");
  const auto lacks_blocks = [](const RecordedRequest& each) {
    return !each.block_ids.empty() &&
           static_cast<std::int64_t>(each.block_ids.size()) * each.block_tokens < each.prompt_tokens;
  };
  if (std::ranges::any_of(workload.recorded, lacks_blocks))
    found.emplace_back("requests: the blocks of a recorded prompt are fewer than its tokens");
  const bool recorded = workload.arrival == ArrivalKind::replay || !workload.recorded.empty();
  if (recorded && workload.recorded.size() < static_cast<std::size_t>(workload.requests))
    found.push_back("requests: " + std::to_string(workload.requests) + " asked for, but " +
                    std::to_string(workload.recorded.size()) + " were recorded");
  return found;
}

void require_room_for(const Request& next, std::int64_t requests, std::int64_t tokens) {
  const auto refuse = [&next](std::int64_t most, const char* what) {
    throw InputError("request " + std::to_string(next.id + 1) + ": more than " + std::to_string(most) + " " + what +
                     " would wait or run at once; ask for fewer, or let them arrive more slowly");
  };
  if (requests + 1 > kMostRequests) refuse(kMostRequests, "requests");
  if (tokens + static_cast<std::int64_t>(next.prompt_token_ids.size()) > kMostTokens)
    refuse(kMostTokens, "tokens of prompts");
}

RequestSource::RequestSource(RequestWorkload workload)
    : workload_(std::move(workload)),
      arrivals_(stream(workload_.seed, kArrivals)),
      prompt_lengths_(stream(workload_.seed, kPromptLengths)),
      output_lengths_(stream(workload_.seed, kOutputLengths)),
      tokens_(stream(workload_.seed, kTokens)),
      repeats_(stream(workload_.seed, kRepeats)),
      padded_length_(padded_length()) {
  finished({}, workload_.max_concurrency.value_or(0));
}

RecordedRequest RequestSource::draw() {
  RecordedRequest drawn;
  if (workload_.recorded.empty())
    drawn = {{}, draw_length(workload_.prompt, prompt_lengths_), draw_length(workload_.output, output_lengths_)};
  else
    drawn = workload_.recorded[static_cast<std::size_t>(given_)];
  if (workload_.arrival == ArrivalKind::replay) return drawn;
  if (workload_.arrival == ArrivalKind::gamma)
    now_ += Seconds(gamma(arrivals_, workload_.burstiness) / (workload_.burstiness * workload_.requests_per_second));
  drawn.arrival = now_;
  return drawn;
}

std::vector<TokenId> RequestSource::draw_prompt(const RecordedRequest& drawn) {
  const int num_tokens = drawn.prompt_tokens;
  const std::uint64_t first = workload_.padding.to == PadTo::nothing ? 0 : kPadToken + 1;
  const std::uint64_t range = static_cast<std::uint64_t>(workload_.vocab_size) - first;
  const int shared = std::min(workload_.prefix_tokens, num_tokens - 1);
  std::vector<TokenId> tokens;
  tokens.reserve(static_cast<std::size_t>(num_tokens));
  const auto fill_to = [&](int end, std::mt19937_64& random) {
    while (static_cast<int>(tokens.size()) < end) tokens.push_back(static_cast<TokenId>(first + random() % range));
  };
  if (shared > 0) {
    const std::int64_t turn = drawn.prompt_id < 0 ? given_ : drawn.prompt_id;
    const auto prefix = static_cast<std::uint32_t>(turn % workload_.prefixes);
    std::mt19937_64 common = stream(workload_.seed, kFirstPrefix + prefix);
    fill_to(shared, common);
  }
  if (!drawn.block_ids.empty()) {
    tokens.clear();  // blocks say what is shared
    for (std::size_t block = 0; static_cast<int>(tokens.size()) < num_tokens; ++block) {
      std::mt19937_64 own = prompt_stream(workload_.seed, drawn.block_ids[block]);
      fill_to(std::min(num_tokens, static_cast<int>(block + 1) * drawn.block_tokens), own);
    }
  } else if (drawn.prompt_id < 0) {
    fill_to(num_tokens, tokens_);
  } else {
    std::mt19937_64 own = prompt_stream(workload_.seed, drawn.prompt_id);
    fill_to(num_tokens, own);
  }
  return tokens;
}

// Its own prompt has been drawn all the same: the share of repeated ones changes nothing about the others.
void RequestSource::repeat(std::vector<TokenId>& prompt) {
  if (workload_.duplicate_prompts <= 0) return;
  const bool repeats = uniform(repeats_) < workload_.duplicate_prompts && given_ > 0;
  if (repeats)
    prompt = prompt_before_;
  else
    prompt_before_ = prompt;
}

int RequestSource::padded_length() const {
  if (workload_.padding.to != PadTo::longest) return workload_.padding.tokens;
  int longest = 0;
  std::mt19937_64 lengths = prompt_lengths_;  // as they will be drawn
  for (int index = 0; index < workload_.requests; ++index)
    longest = std::max(longest, workload_.recorded.empty()
                                    ? draw_length(workload_.prompt, lengths)
                                    : workload_.recorded[static_cast<std::size_t>(index)].prompt_tokens);
  return longest;
}

void RequestSource::pad(Request& request) const {
  if (workload_.padding.to == PadTo::nothing) return;
  const int missing = std::max(0, padded_length_ - static_cast<int>(request.prompt_token_ids.size()));
  if (workload_.padding.skipped)
    request.num_padding_tokens = missing;
  else
    request.prompt_token_ids.insert(request.prompt_token_ids.begin(), static_cast<std::size_t>(missing), kPadToken);
}

std::optional<Request> RequestSource::next() {
  if (is_exhausted()) return std::nullopt;
  const RecordedRequest drawn = draw();
  Request request;
  request.prompt_token_ids = draw_prompt(drawn);
  repeat(request.prompt_token_ids);
  pad(request);
  request.max_tokens = drawn.output_tokens;
  request.sampling = workload_.sampling;
  request.sampling.seed += static_cast<std::uint64_t>(given_);
  request.eos = EosHandling::ignore;
  request.arrival = drawn.arrival;
  request.id = given_++;
  return request;
}

std::optional<Request> RequestSource::next_to_serve() {
  if (workload_.max_concurrency && free_since_.empty()) return std::nullopt;
  std::optional<Request> request = next();
  if (!request || !workload_.max_concurrency) return request;
  request->arrival = std::max(request->arrival, free_since_.top());
  free_since_.pop();
  return request;
}

void RequestSource::finished(Seconds when, int requests) {
  for (int count = 0; workload_.max_concurrency && count < requests; ++count) free_since_.push(when);
}

}  // namespace dculab
