// What an engine can be set to on a machine, and what it then serves.
//
//   rate     = b * output / (time of b prefills + output decode steps of b)      offline_run.hpp, always b running
//   TPOT     = (time of b prefills + output decode steps of b) / output          Little's law: prefills delay decodes
//   batch b  = the largest that fits in memory, in the load's sequences and in its TPOT; where neither sequences nor
//              TPOT are asked for, the smallest that serves 95 % of that: what comes after is waiting. As engines are
//              set up, in steps: down by batch_step, up to a multiple of 8 for the 95 %. Where it is asked for, any
//              number
//
// The devices of a replica may share the layers (tensor parallel), which makes its steps shorter. Its groups with
// sequences of their own (expert parallel) serve as much as one each. The p stages of a pipeline have p batches at a
// time, each in 1 / p of the blocks: each stage is priced as the fullest, the rate is that of one, and a token takes
// p steps.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "core/engine_options.hpp"
#include "model/model_shape.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/deployment.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

inline constexpr int kMostSequences = 1024;  // vLLM's max_num_seqs on large devices
inline constexpr double kKneeShare = 0.95;   // of the highest rate
inline constexpr int kBatchStep = 8;         // the largest step in which limits are set

// The step in which a limit of about `batch` sequences is set: the largest power of two up to an eighth of it,
// kBatchStep at most and 1 at least. Rounding down so gives up no more than a ninth.
[[nodiscard]] int batch_step(int batch);

struct Setting {
  int kv_heads = 0;
  Dtype kv_cache_dtype = Dtype::f16;
  int block_size = 16;
  int partition_tokens = 512;  // 0 = never split

  friend bool operator==(const Setting&, const Setting&) = default;
};

enum class SequenceLimit : std::uint8_t { memory, tpot, asked_for, waits, gain, most };
[[nodiscard]] std::string_view name(SequenceLimit limit);

// The means of what is asked for.
struct SteadyLoad {
  int prompt_tokens = 1;
  int output_tokens = 1;
  std::optional<int> sequences;  // most at a time
  std::optional<Seconds> tpot;
};

struct ServingCase {
  Machine machine;
  ModelShape model;       // whole, with its own KV heads
  EngineOptions options;  // what no setting changes
  SteadyLoad load;        // of a replica
  ReplicaDevices devices{};

  [[nodiscard]] int mean_context() const { return load.prompt_tokens + (load.output_tokens + 1) / 2; }
};

// Of a replica; `batch`, `most` and `room` of each of its schedulers: of a group, of a stage.
struct Served {
  int batch = 0;  // 0: not one sequence fits, or none is fast enough, and of what follows only limit and tpot say more
  int most = 0;   // sequences that could be served at a time: fit, are fast enough, and as many as asked for
  int room = 0;   // that fit, and as many as asked for
  SequenceLimit limit = SequenceLimit::memory;
  double output_tokens_per_second = 0;
  Seconds tpot;  // of a batch that is always full; where one sequence alone is too slow, of that
};

// What each device has of the model, of a pipeline the fullest. Precondition: problems() of the devices and the model
// with the setting's KV heads are empty.
[[nodiscard]] ModelShape model_of(const ServingCase& serving, const Setting& setting);
[[nodiscard]] EngineOptions options_of(const ServingCase& serving, const Setting& setting);

// At its best batch. Precondition: problems() of model_of and options_of are empty.
[[nodiscard]] Served serve(const ServingCase& serving, const Setting& setting);

// With `batch` sequences for each scheduler, whatever the load's TPOT; the limit is SequenceLimit::waits.
// Precondition: they fit.
[[nodiscard]] Served serve_with(const ServingCase& serving, const Setting& setting, int batch);

// What decides how many sequences a scheduler serves at a time; `tpot` and `rate` are of a batch that fits.
struct BatchLaw {
  std::function<bool(int batch)> fits;
  std::function<Seconds(int batch)> tpot;
  std::function<double(int batch)> rate;  // output tokens per second of a replica
};

// The best batch by the rule above.
[[nodiscard]] Served serve(const SteadyLoad& load, const BatchLaw& law);

// Output tokens per second of a replica with `batch` sequences for each scheduler on `machine`; 0 when they do not fit.
[[nodiscard]] double served_rate(const Machine& machine, const ServingCase& serving, const Setting& setting, int batch);

// A decode step of `batch` sequences of `context` tokens; of a pipeline, of one stage.
struct DecodeStep {
  StepPlan plan;
  StepPrice price;
};
[[nodiscard]] DecodeStep decode_step(const ServingCase& serving, const Setting& setting, int batch, int context);

// The nearest values below and above `from`, within [least, most], at which `holds` is no longer true: found by steps
// of a factor of 2, then bisected. Precondition: least <= from <= most, and holds(from).
struct Flips {
  std::optional<int> below, above;
};
[[nodiscard]] Flips nearest_flips(int from, int least, int most, const std::function<bool(int)>& holds);

}  // namespace dculab::sim
