#include "engine/evaluate/decode_speed.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "core/scheduler.hpp"
#include "core/serving_loop.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

constexpr std::uint64_t kSeed = 1;

// Any token will do: speed does not depend on which.
class SameToken final : public TokenSource {
 public:
  TokenId next_token(const Sequence& /*sequence*/, int /*logits_row*/) override { return 0; }
};

std::vector<TokenId> random_prompt(int num_tokens, int vocab_size, std::mt19937_64& random) {
  std::uniform_int_distribution<TokenId> token(0, vocab_size - 1);
  std::vector<TokenId> prompt(static_cast<std::size_t>(num_tokens));
  std::ranges::generate(prompt, [&] { return token(random); });
  return prompt;
}

// Which steps are decodes of all sequences: those after every sequence has its first token.
struct Progress {
  int started = 0;   // sequences with a token
  int finished = 0;  // sequences that are done
};

int prefill_steps(const DecodeSpeedOptions& options, int tokens_per_step) {
  return static_cast<int>(std::int64_t{options.batch} * options.context / tokens_per_step) + 1;
}

}  // namespace

Seconds median_decode_step(Generator& generator, const DecodeSpeedOptions& options) {
  const ModelShape& shape = generator.shape();
  const EngineOptions engine = generator.undrafted_options();
  Scheduler scheduler(engine, {.num_blocks = generator.executor().kv_cache().num_blocks,
                               .max_position_embeddings = shape.max_position_embeddings});
  SameToken tokens;
  VirtualClock clock;
  Progress progress;
  ServingLoop loop(
      {planner_of(generator.executor().planned_model(), engine), scheduler, generator.executor(), tokens, clock},
      {.on_tokens = [&](const Sequence& each, int count) { progress.started += each.num_generated() == count ? 1 : 0; },
       .on_finished = [&](const Sequence&) { ++progress.finished; }});
  const int max_tokens = options.steps + prefill_steps(options, engine.max_num_batched_tokens);
  std::mt19937_64 random(kSeed);
  for (int index = 0; index < options.batch; ++index)
    if (const auto refusal = loop.submit({.id = index,
                                          .prompt_token_ids = random_prompt(options.context, shape.vocab_size, random),
                                          .max_tokens = max_tokens,
                                          .eos = EosHandling::ignore}))
      throw InputError(*refusal);

  std::vector<Seconds> durations;
  bool all_decode = false;
  while (progress.finished == 0) {
    const Seconds before = loop.report().executor_time;
    if (!loop.step()) break;
    if (all_decode) durations.push_back(loop.report().executor_time - before);
    all_decode = progress.started == options.batch;
  }
  if (durations.empty()) throw InputError("the sequences of the decode measurement do not fit into the cache together");
  std::ranges::nth_element(durations, durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2));
  return durations[durations.size() / 2];
}

}  // namespace dculab::engine
