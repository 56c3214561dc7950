#include "sim/study/serving_setting.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/plan_step.hpp"
#include "sim/study/offline_run.hpp"

namespace dculab::sim {
namespace {

// What one scheduler of a replica does with its batch.
struct SchedulerRun {
  const Machine& machine;
  const SteadyLoad& load;
  const ReplicaDevices& devices;
  ModelShape part;
  EngineOptions options;

  SchedulerRun(const Machine& on, const ServingCase& serving, const Setting& setting)
      : machine(on),
        load(serving.load),
        devices(serving.devices),
        part(model_of(serving, setting)),
        options(options_of(serving, setting)) {}

  [[nodiscard]] OfflineRequests work_of(int batch) const {
    return {.requests = batch, .prompt_tokens = load.prompt_tokens, .output_tokens = load.output_tokens};
  }
  [[nodiscard]] EngineOptions options_with(int batch) const {
    EngineOptions limited = options;
    limited.max_num_seqs = batch;
    return limited;
  }
  // Beside as many of every other stage.
  [[nodiscard]] bool fits(int batch) const {
    return sequences_that_fit(machine, part, options_with(batch), work_of(batch)) / devices.pipeline_parallel_size >=
           batch;
  }
  // Precondition: fits(batch).
  [[nodiscard]] OfflineRun run(int batch) const {
    return offline_run(machine, part, options_with(batch), work_of(batch));
  }
  [[nodiscard]] double rate(int batch) const { return devices.ranks() * run(batch).output_tokens_per_second; }
  [[nodiscard]] Seconds tpot(int batch) const {
    return run(batch).total_time * (devices.pipeline_parallel_size / static_cast<double>(load.output_tokens));
  }
};

// The largest value in [0, most] for which `holds`, which is true up to some value and false beyond.
template <class Holds>
[[nodiscard]] int largest(int most, Holds holds) {
  int good = 0, bad = most + 1;
  while (bad - good > 1) {
    const int middle = good + (bad - good) / 2;
    (holds(middle) ? good : bad) = middle;
  }
  return good;
}

// The first value on the way from `from` to `end` at which `holds` fails.
[[nodiscard]] std::optional<int> flip_towards(int from, int end, const std::function<bool(int)>& holds) {
  int good = from;
  while (good != end) {
    const int next = end > from ? std::min(end, good * 2) : std::max(end, good / 2);
    if (holds(next)) {
      good = next;
      continue;
    }
    int bad = next;
    while (std::abs(bad - good) > 1) {
      const int middle = (good + bad) / 2;
      (holds(middle) ? good : bad) = middle;
    }
    return bad;
  }
  return std::nullopt;
}

[[nodiscard]] int round_down(int batch) { return batch / batch_step(batch) * batch_step(batch); }

}  // namespace

int batch_step(int batch) {
  constexpr unsigned kLargest = kBatchStep;
  return static_cast<int>(std::min(kLargest, std::bit_floor(std::max(8u, static_cast<unsigned>(batch)) / 8)));
}

std::string_view name(SequenceLimit limit) {
  switch (limit) {
    case SequenceLimit::memory:
      return "memory";
    case SequenceLimit::tpot:
      return "TPOT";
    case SequenceLimit::asked_for:
      return "as many as asked for";
    case SequenceLimit::waits:
      return "enough for short waits";
    case SequenceLimit::gain:
      return "95 % of the highest rate";
    case SequenceLimit::most:
      return "1024 at most";
  }
  return "?";
}

ModelShape model_of(const ServingCase& serving, const Setting& setting) {
  return part_of_a_device(serving.devices, serving.machine, with_kv_heads(serving.model, setting.kv_heads),
                          serving.options);
}

EngineOptions options_of(const ServingCase& serving, const Setting& setting) {
  EngineOptions options = serving.options;
  options.kv_cache_dtype = setting.kv_cache_dtype;
  options.block_size = setting.block_size;
  options.attention_split.partition_tokens = setting.partition_tokens;
  return options;
}

double served_rate(const Machine& machine, const ServingCase& serving, const Setting& setting, int batch) {
  const SchedulerRun scheduler(machine, serving, setting);
  return scheduler.fits(batch) ? scheduler.rate(batch) : 0;
}

Served serve(const ServingCase& serving, const Setting& setting) {
  const SchedulerRun scheduler(serving.machine, serving, setting);
  return serve(serving.load, {.fits = [&](int batch) { return scheduler.fits(batch); },
                              .tpot = [&](int batch) { return scheduler.tpot(batch); },
                              .rate = [&](int batch) { return scheduler.rate(batch); }});
}

Served serve_with(const ServingCase& serving, const Setting& setting, int batch) {
  const SchedulerRun scheduler(serving.machine, serving, setting);
  return {.batch = batch,
          .most = batch,
          .room = batch,
          .limit = SequenceLimit::waits,
          .output_tokens_per_second = scheduler.rate(batch),
          .tpot = scheduler.tpot(batch)};
}

Served serve(const SteadyLoad& load, const BatchLaw& law) {
  const int most = load.sequences.value_or(kMostSequences);
  Served served;
  const int room = largest(most, law.fits);
  served.batch = load.tpot ? largest(room, [&](int batch) { return law.tpot(batch) <= *load.tpot; }) : room;
  served.limit = served.batch < room ? SequenceLimit::tpot
                 : room < most       ? SequenceLimit::memory
                 : load.sequences    ? SequenceLimit::asked_for
                                     : SequenceLimit::most;
  served.most = served.batch;
  served.room = room;
  if (served.batch == 0) {
    if (room > 0) served.tpot = law.tpot(1);
    return served;
  }
  if (served.limit != SequenceLimit::asked_for) served.batch = round_down(served.most);
  if (!load.tpot && !load.sequences) {
    const double enough = kKneeShare * law.rate(served.batch);
    const int knee = 1 + largest(served.batch - 1, [&](int batch) { return law.rate(batch) < enough; });
    const int enough_in_steps = (knee + kBatchStep - 1) / kBatchStep * kBatchStep;
    if (enough_in_steps < served.batch) served.limit = SequenceLimit::gain;
    served.batch = std::min(enough_in_steps, served.batch);
  }
  served.output_tokens_per_second = law.rate(served.batch);
  served.tpot = law.tpot(served.batch);
  return served;
}

DecodeStep decode_step(const ServingCase& serving, const Setting& setting, int batch, int context) {
  DecodeStep step;
  step.plan =
      plan_step(model_of(serving, setting), options_of(serving, setting), uniform_batch(Phase::decode, batch, context));
  step.price = price_step(serving.machine, step.plan);
  return step;
}

Flips nearest_flips(int from, int least, int most, const std::function<bool(int)>& holds) {
  return {flip_towards(from, least, holds), flip_towards(from, most, holds)};
}

}  // namespace dculab::sim
