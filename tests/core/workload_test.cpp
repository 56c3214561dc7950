#include "core/workload.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

std::vector<Request> all_of(const RequestWorkload& workload) {
  REQUIRE(problems(workload).empty());
  RequestSource source(workload);
  std::vector<Request> requests;
  while (auto request = source.next()) requests.push_back(*std::move(request));
  return requests;
}

LengthDistribution fixed(int tokens) { return {.center = static_cast<double>(tokens)}; }

struct Moments {
  double mean = 0, deviation = 0;
};

Moments gaps_between(const std::vector<Request>& requests) {
  double sum = 0, squares = 0;
  Seconds last;
  for (const Request& request : requests) {
    const double gap = (request.arrival - last).value();
    REQUIRE(gap >= 0);
    last = request.arrival;
    sum += gap;
    squares += gap * gap;
  }
  const auto count = static_cast<double>(requests.size());
  return {sum / count, std::sqrt(squares / count - std::pow(sum / count, 2))};
}

}  // namespace

TEST_CASE("arrivals have the rate and the burstiness asked for", "[workload]") {
  // A gamma distribution of shape b has deviation / mean = 1 / sqrt(b).
  for (const double burstiness : {0.25, 0.5, 1.0, 4.0}) {
    RequestWorkload workload{.requests = 40000, .prompt = fixed(1), .output = fixed(1), .arrival = ArrivalKind::gamma};
    workload.requests_per_second = 5;
    workload.burstiness = burstiness;
    const Moments gaps = gaps_between(all_of(workload));
    CHECK_THAT(gaps.mean, WithinRel(0.2, 0.03));
    CHECK_THAT(gaps.deviation / gaps.mean, WithinRel(1 / std::sqrt(burstiness), 0.05));
  }
}

TEST_CASE("lengths follow their distribution and stay within their bounds", "[workload]") {
  RequestWorkload workload{.requests = 20001};
  workload.prompt = {LengthKind::lognormal, 300, 0.8, 20, 2000};
  workload.output = {LengthKind::uniform, 1, 0, 5, 8};
  std::vector<int> prompts;
  std::vector<int> seen(9);
  for (const Request& request : all_of(workload)) {
    prompts.push_back(static_cast<int>(request.prompt_token_ids.size()));
    REQUIRE((request.max_tokens >= 5 && request.max_tokens <= 8));
    ++seen[static_cast<std::size_t>(request.max_tokens)];
  }
  std::ranges::sort(prompts);
  CHECK(prompts.front() >= 20);
  CHECK(prompts.back() == 2000);
  CHECK_THAT(prompts[10000], WithinRel(300.0, 0.03));
  // A normal distribution has 84.1 % below one deviation.
  CHECK_THAT(prompts[16827], WithinRel(300 * std::exp(0.8), 0.04));
  for (std::size_t length = 5; length <= 8; ++length) CHECK_THAT(seen[length], WithinRel(5000.0, 0.06));

  workload.prompt = {.kind = LengthKind::exponential, .center = 100};
  double sum = 0;
  for (const Request& request : all_of(workload)) sum += static_cast<double>(request.prompt_token_ids.size());
  CHECK_THAT(sum / 20001, WithinRel(100.0, 0.03));
}

TEST_CASE("a seed gives the same requests again, another seed others", "[workload]") {
  RequestWorkload workload{.requests = 50, .prompt = fixed(8), .output = fixed(2), .arrival = ArrivalKind::gamma};
  const auto first = all_of(workload), again = all_of(workload);
  workload.seed = 2;
  const auto other = all_of(workload);
  for (std::size_t index = 0; index < first.size(); ++index) {
    CHECK(first[index].id == static_cast<SequenceId>(index));
    CHECK(first[index].arrival == again[index].arrival);
    CHECK(first[index].prompt_token_ids == again[index].prompt_token_ids);
    CHECK(first[index].prompt_token_ids != other[index].prompt_token_ids);
  }
}

TEST_CASE("how requests arrive, and what they share, changes nothing about their lengths", "[workload]") {
  RequestWorkload workload{.requests = 30};
  workload.prompt = {LengthKind::uniform, 1, 0, 10, 90};
  workload.output = {LengthKind::exponential, 50, 0, 1, 400};
  const auto plain = all_of(workload);
  workload.prefix_tokens = 8;
  workload.arrival = ArrivalKind::gamma;
  const auto other = all_of(workload);
  for (std::size_t index = 0; index < plain.size(); ++index) {
    CHECK(plain[index].prompt_token_ids.size() == other[index].prompt_token_ids.size());
    CHECK(plain[index].max_tokens == other[index].max_tokens);
  }
}

TEST_CASE("prompts of one prefix begin alike and go on differently", "[workload]") {
  RequestWorkload workload{.requests = 4, .prompt = fixed(40), .output = fixed(1)};
  workload.prefix_tokens = 32;
  workload.prefixes = 2;
  const auto requests = all_of(workload);
  const auto shared = [&](std::size_t a, std::size_t b) {
    const auto& first = requests[a].prompt_token_ids;
    return std::ranges::mismatch(first, requests[b].prompt_token_ids).in1 - first.begin();
  };
  CHECK(shared(0, 2) >= 32);
  CHECK(shared(0, 2) < 40);
  CHECK(shared(1, 3) >= 32);
  CHECK(shared(0, 1) < 32);
}

TEST_CASE("recorded requests are replayed, or lend their lengths to other arrivals", "[workload]") {
  RequestWorkload workload{.requests = 2, .arrival = ArrivalKind::replay};
  workload.recorded = {{Seconds(0.5), 10, 3}, {Seconds(2), 20, 4}, {Seconds(3), 30, 5}};
  auto requests = all_of(workload);
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].arrival == Seconds(2));
  CHECK(requests[1].prompt_token_ids.size() == 20);
  CHECK(requests[1].max_tokens == 4);
  workload.arrival = ArrivalKind::all_at_once;
  requests = all_of(workload);
  CHECK(requests[1].arrival == Seconds(0));
  CHECK(requests[1].max_tokens == 4);

  workload.requests = 4;
  CHECK(problems(workload) == std::vector<std::string>{"requests: 4 asked for, but 3 were recorded"});
}

TEST_CASE("padded prompts are pad tokens and the prompts that come without them where padding is skipped",
          "[workload]") {
  RequestWorkload workload{.requests = 40, .prompt = {LengthKind::uniform, 1, 0, 10, 90}, .vocab_size = 20};
  workload.prefix_tokens = 4;
  const auto bare = all_of(workload);
  for (const PromptPadding padding : {PromptPadding{PadTo::longest}, PromptPadding{PadTo::length, 50}}) {
    workload.padding = padding;
    const auto padded = all_of(workload);
    workload.padding.skipped = true;
    const auto skipped = all_of(workload);
    std::size_t longest = 0, pads = 0;
    for (std::size_t index = 0; index < bare.size(); ++index) {
      const auto& prompt = padded[index].prompt_token_ids;
      const auto& kept = skipped[index].prompt_token_ids;
      CHECK(kept.size() == bare[index].prompt_token_ids.size());
      CHECK(prompt.size() - kept.size() == static_cast<std::size_t>(skipped[index].num_padding_tokens));
      CHECK(padded[index].num_padding_tokens == 0);
      CHECK(without_padding(prompt, kPadToken, {}) == kept);
      CHECK(std::ranges::count(kept, kPadToken) == 0);
      CHECK(padded[index].max_tokens == bare[index].max_tokens);
      longest = std::max(longest, kept.size());
      pads += prompt.size() - kept.size();
    }
    CHECK(pads > 0);
    const std::size_t least = padding.to == PadTo::longest ? longest : 50;
    for (const Request& request : padded)
      CHECK((request.prompt_token_ids.size() == least || request.prompt_token_ids.size() > 50));
  }
}

TEST_CASE("a share of the requests repeats the prompt before, and the others stay what they are", "[workload]") {
  RequestWorkload workload{.requests = 4000, .prompt = {LengthKind::uniform, 1, 0, 5, 9}};
  const auto bare = all_of(workload);
  workload.duplicate_prompts = 0.25;
  const auto some = all_of(workload);
  int repeated = 0;
  for (std::size_t index = 0; index < bare.size(); ++index) {
    CHECK(some[index].max_tokens == bare[index].max_tokens);
    if (some[index].prompt_token_ids == bare[index].prompt_token_ids) continue;
    CHECK(some[index].prompt_token_ids == some[index - 1].prompt_token_ids);
    ++repeated;
  }
  CHECK_THAT(repeated / 4000.0, WithinRel(0.25, 0.1));
  workload.duplicate_prompts = 1;
  for (const Request& request : all_of(workload)) CHECK(request.prompt_token_ids == bare.front().prompt_token_ids);
}

TEST_CASE("with max_concurrency a request is sent when one before it has finished", "[workload]") {
  RequestWorkload workload{.requests = 5, .max_concurrency = 2};
  RequestSource source(workload);
  CHECK(source.next_to_serve()->arrival == Seconds(0));
  CHECK(source.next_to_serve()->arrival == Seconds(0));
  CHECK_FALSE(source.next_to_serve());
  source.finished(Seconds(3));
  CHECK(source.next_to_serve()->arrival == Seconds(3));
  CHECK_FALSE(source.next_to_serve());
  source.finished(Seconds(4), 2);
  CHECK(source.next_to_serve()->arrival == Seconds(4));
  CHECK_FALSE(source.is_exhausted());
  CHECK(source.next_to_serve()->id == 4);
  CHECK(source.is_exhausted());
  CHECK_FALSE(source.next_to_serve());
  CHECK(all_of(workload).size() == 5);
}

TEST_CASE("recorded requests with one prompt_id ask the same", "[workload]") {
  RequestWorkload workload{.requests = 4, .arrival = ArrivalKind::replay};
  workload.recorded = {{Seconds(0), 10, 3, 5}, {Seconds(1), 10, 3, 6}, {Seconds(2), 12, 3, 5}, {Seconds(3), 10, 3}};
  const auto requests = all_of(workload);
  const auto prompt = [&](std::size_t index) { return requests[index].prompt_token_ids; };
  CHECK(prompt(0) != prompt(1));
  CHECK(prompt(0) != prompt(3));
  CHECK(std::ranges::equal(prompt(0), std::span(requests[2].prompt_token_ids).first(10)));
}

TEST_CASE("recorded blocks of one id are the same tokens, whoever has them", "[workload]") {
  RequestWorkload workload{.requests = 3, .arrival = ArrivalKind::replay};
  workload.recorded = {{.prompt_tokens = 40, .block_ids = {7, 8, 9}, .block_tokens = 16},
                       {.prompt_tokens = 37, .block_ids = {7, 8, 5}, .block_tokens = 16},
                       {.prompt_tokens = 20, .block_ids = {8, 7}, .block_tokens = 16}};
  const auto requests = all_of(workload);
  const auto block = [&](std::size_t request, std::size_t begin, std::size_t size) {
    const auto& tokens = requests[request].prompt_token_ids;
    return std::vector<TokenId>(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                tokens.begin() + static_cast<std::ptrdiff_t>(begin + size));
  };
  CHECK(requests[1].prompt_token_ids.size() == 37);
  CHECK(block(0, 0, 32) == block(1, 0, 32));
  CHECK(block(0, 32, 5) != block(1, 32, 5));
  CHECK(block(2, 0, 16) == block(0, 16, 16));
  CHECK(block(2, 16, 4) == block(0, 0, 4));
  workload.recorded[2].block_ids = {8};
  CHECK_THAT(problems(workload).front(), ContainsSubstring("blocks of a recorded prompt"));
}

TEST_CASE("a workload that makes no sense is refused in words", "[workload]") {
  RequestWorkload workload{.requests = 0, .arrival = ArrivalKind::gamma};
  workload.requests_per_second = 0;
  workload.burstiness = -1;
  workload.prompt = {LengthKind::uniform, 1, 0, 9, 3};
  const auto found = problems(workload);
  REQUIRE(found.size() == 4);
  CHECK(found[0] == "requests: must be at least 1");
  CHECK(found[1] == "prompt_tokens: min (9) is above max (3)");

  RequestWorkload skipped{.requests = 1};
  skipped.duplicate_prompts = 1.5;
  skipped.padding = {PadTo::length, 0};
  CHECK(problems(skipped) == std::vector<std::string>{"duplicate_prompts: must be a share, at least 0 and at most 1",
                                                      "pad_to: must be at least 1 token"});
}

TEST_CASE("more requests or prompts than memory should hold at once are refused", "[workload]") {
  Request next{.id = 41, .prompt_token_ids = {1, 2, 3}};
  CHECK_NOTHROW(require_room_for(next, (1 << 22) - 1, (1 << 28) - 3));
  CHECK_THROWS_WITH(require_room_for(next, 1 << 22, 0),
                    "request 42: more than 4194304 requests would wait or run at once; ask for fewer, or let them "
                    "arrive more slowly");
  CHECK_THROWS_WITH(require_room_for(next, 1, (1 << 28) - 2), ContainsSubstring("268435456 tokens of prompts"));
}
