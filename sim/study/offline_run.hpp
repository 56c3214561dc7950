// What it takes to serve equal requests that are all there from the start, in closed form.
//
//   batch         = min( requests, max_num_seqs, KV blocks that fit / blocks of a sequence )
//   blocks        = whole ones, the mean from prompt + 1 to prompt + output tokens: half a block is free on average
//   prefill steps = requests / prompts each,   prompts each = clamp(max_num_batched_tokens / prompt, 1, batch)
//   decode steps  = requests * output / batch,   contexts spread evenly from prompt + 1 to prompt + output
//   total time    = prefill steps * price + decode steps * price
//   latency       = batch * total time / requests                 a request's mean time in the batch, Little's law
//   rates         = requests, requests * (prompt + output), requests * output, each / total time
//
// What it leaves out: the first and the last moments, when the batch is not full; that lengths differ; preemption;
// prefill and decode in one step. A simulation of the scheduler has them (serving_run.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/measured_run.hpp"

namespace dculab::sim {

// The blocks that a decode's attention walks: of the sequence's own tokens, or as many as the longest one has.
enum class WalkedBlocks : std::uint8_t { own, of_longest };

struct OfflineRequests {
  int requests = 1;
  int prompt_tokens = 1;
  int output_tokens = 1;
  WalkedBlocks walked = WalkedBlocks::own;
};

enum class BatchLimit : std::uint8_t { requests, max_num_seqs, memory };
[[nodiscard]] std::string_view name(BatchLimit limit);

struct OfflineRun {
  MeasuredRun measured_run;  // timed is the whole run
  int batch = 0;             // sequences that decode together; 0: not one fits, and nothing else is filled in
  BatchLimit limit = BatchLimit::requests;
  Seconds total_time;
  Seconds latency_mean;
  double requests_per_second = 0;
  double tokens_per_second = 0;  // prompt and output
  double output_tokens_per_second = 0;
};

// Preconditions: problems(model) and problems(options) are empty; counts are at least 1.
[[nodiscard]] OfflineRun offline_run(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                     const OfflineRequests& work);

// Sequences that fit in memory at a time, each somewhere between its first and its last token.
[[nodiscard]] std::int64_t sequences_that_fit(const Machine& machine, const ModelShape& model,
                                              const EngineOptions& options, const OfflineRequests& work);

// A decode step of `batch` sequences whose contexts are spread evenly.
[[nodiscard]] Batch decode_batch(const OfflineRequests& work, int batch);

// The time of a run by what it is spent on and what limits that: "matmul, compute" -> seconds, "host" -> seconds.
// What is spent on is "matmul", "attention" or "other".
[[nodiscard]] std::map<std::string, Seconds> run_shares(const Machine& machine, const MeasuredRun& measured_run);

}  // namespace dculab::sim
