#include "engine/measure/draft_bench.hpp"

#include <algorithm>
#include <random>
#include <thread>

#include "core/error.hpp"
#include "engine/generate/engine_core.hpp"
#include "engine/generate/wall_clock.hpp"
#include "engine/speculation/draft_model.hpp"

namespace dculab::engine {
namespace {

constexpr int kPlainSteps = 12;  // of a run that are counted
constexpr int kDraftedSteps = 8;

// What the counted steps of one run took together.
struct RunTimes {
  Seconds steps, drafting;
  std::int64_t num_steps = 0;
  DraftCounts counts;
};

// Steps in which every sequence decodes, with as much drafted as may be. The first is left out: buffers grow in it.
class RunObserver {
 public:
  RunObserver(int batch, int drafted) : batch_(batch), drafted_(drafted) {}

  void see(const ServedStep& step) {
    const std::vector<SequenceSlice>& slices = step.plan.batch.sequences;
    const auto is_whole = [this](const SequenceSlice& slice) {
      return slice.phase == Phase::decode && slice.num_draft_tokens == drafted_;
    };
    if (static_cast<int>(slices.size()) != batch_ || !std::ranges::all_of(slices, is_whole)) return;
    if (num_seen_++ == 0) return;
    times_.steps += step.end - step.begin;
    times_.drafting += step.drafting;
    times_.counts += step.drafts;
    ++times_.num_steps;
  }

  [[nodiscard]] const RunTimes& times() const { return times_; }

 private:
  int batch_, drafted_, num_seen_ = 0;
  RunTimes times_;
};

[[nodiscard]] Request request_of(int id, int prompt_tokens, int max_tokens, int vocab_size, std::mt19937_64& random) {
  Request request{.id = id, .max_tokens = max_tokens, .eos = EosHandling::ignore};
  std::uniform_int_distribution<TokenId> token(0, vocab_size - 1);
  for (int index = 0; index < prompt_tokens; ++index) request.prompt_token_ids.push_back(token(random));
  request.sampling.seed = random();
  request.num_received_tokens = prompt_tokens - 1;
  return request;
}

// Decodes until `steps` steps were counted, or nearly: sequences with longer drafts accepted end earlier.
[[nodiscard]] RunTimes run_once(OpenModel& model, const EngineOptions& options, const DraftBenchPoint& point, int steps,
                                std::mt19937_64& random) {
  WallClock clock;
  RunObserver observer(point.batch, options.speculative_config.shape.num_tokens());
  EngineCore core(model, options, clock, RequestRecords::drop,
                  {.on_step = [&observer](const ServedStep& step) { observer.see(step); }});
  const int most = (steps + 2) * (1 + options.speculative_config.num_speculative_tokens());
  const int prompt = std::max(1, point.context_tokens - most / 2);
  for (int id = 0; id < point.batch; ++id)
    if (const auto reason =
            core.loop().submit(request_of(id, prompt, most, model.executor->shape().vocab_size, random)))
      throw InputError(point.id + ": " + *reason);
  while (observer.times().num_steps < steps && core.loop().step()) {
  }
  for (int id = 0; id < point.batch; ++id) model.drafts.drafter->forget(id);  // those that have not ended
  return observer.times();
}

[[nodiscard]] double middle(std::vector<double> values, double quantile) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(quantile * static_cast<double>(values.size() - 1) + 0.5)];
}

// The rounds of a point.
class Rounds {
 public:
  void add(const RunTimes& plain, const RunTimes& drafted) {
    const auto per_step = [](Seconds time, const RunTimes& run) {
      return (time / static_cast<double>(run.num_steps)).value();
    };
    plain_.push_back(per_step(plain.steps, plain));
    drafting_.push_back(per_step(drafted.drafting, drafted));
    verify_.push_back(per_step(drafted.steps - drafted.drafting, drafted));
    steps_.push_back(plain_.back() / (verify_.back() + drafting_.back()));
    counts_ += drafted.counts;
  }

  // How many tokens are accepted is drawn: their mean over all rounds has less chance in it than that of a round.
  [[nodiscard]] MeasuredDraft result() const {
    const double tokens = counts_.mean_acceptance_length();
    return {.plain = Seconds(middle(plain_, 0.5)),
            .verify = Seconds(middle(verify_, 0.5)),
            .drafting = Seconds(middle(drafting_, 0.5)),
            .tokens = tokens,
            .speed_up = tokens * middle(steps_, 0.5),
            .spread = tokens * (middle(steps_, 0.75) - middle(steps_, 0.25)) / 2,
            .counts = counts_};
  }

 private:
  std::vector<double> plain_, verify_, drafting_, steps_;
  DraftCounts counts_;
};

// With room for what the point's runs decode.
[[nodiscard]] EngineOptions options_for(const DraftBenchPoint& point) {
  EngineOptions options = point.options;
  const int each = 1 + options.speculative_config.shape.num_tokens();
  options.max_num_seqs = std::max(options.max_num_seqs, point.batch);
  options.max_num_batched_tokens = std::max(options.max_num_batched_tokens, point.batch * each);
  return options;
}

[[nodiscard]] int blocks_for(const DraftBenchPoint& point, const EngineOptions& options) {
  const int drafted = options.speculative_config.shape.num_tokens();
  const int longest = point.context_tokens + (kPlainSteps + 2) * (1 + drafted);
  return point.batch * ((longest + drafted) / options.block_size + 2) + 1;
}

}  // namespace

std::vector<MeasuredDraft> measure_drafts(const ModelWeights& weights, const ModelWeights& draft,
                                          std::span<const DraftBenchPoint> points, const BenchOptions& options,
                                          const BenchProgress& progress) {
  const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  std::mt19937_64 random(options.seed);
  std::vector<MeasuredDraft> measured;
  for (const DraftBenchPoint& point : points) {
    const EngineOptions drafted = options_for(point);
    EngineOptions plain = drafted;
    plain.speculative_config = {};
    require_draft_of(weights.shape, draft.shape, drafted);
    OpenModel model = open_model(weights, drafted, std::optional(draft), open_device(options.device),
                                 blocks_for(point, drafted), threads);
    model.executor->fill_kv_cache(random());
    if (auto* const drafter = dynamic_cast<DraftModel*>(model.drafts.drafter.get())) drafter->fill_kv_cache(random());
    Rounds rounds;
    for (int round = 0; round < options.repeats; ++round)
      rounds.add(run_once(model, plain, point, kPlainSteps, random),
                 run_once(model, drafted, point, kDraftedSteps, random));
    measured.push_back(rounds.result());
    progress("measuring " + point.id, static_cast<double>(measured.size()) / static_cast<double>(points.size()));
  }
  return measured;
}

}  // namespace dculab::engine
