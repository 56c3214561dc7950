// The last steps of an engine: how long each took, and what the simulator says of it. The engine's thread only hands a
// step over; another one prices it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/batch.hpp"
#include "core/serving_loop.hpp"

namespace dculab::http {

// Prices a batch that began at a time. Called on one thread, in the order of the steps.
using PriceBatch = std::function<Seconds(const Batch& batch, Seconds begin)>;

struct SeenStep {
  std::int64_t number = 0;  // from 1 on
  int sequences = 0;
  std::int64_t prefill_tokens = 0, context_tokens = 0;  // tokens of prefills; in the KV cache of all sequences
  Seconds begin, measured;
  std::optional<Seconds> predicted{};
};

// Of all steps that were priced.
struct StepTotals {
  std::int64_t steps = 0, unpriced = 0;  // unpriced: came faster than they could be priced, or could not be
  Seconds measured, predicted;
};

struct StepView {
  std::string machine{};  // that prices; empty: none was given
  std::vector<SeenStep> steps{};
  StepTotals all{};
  StepTotals decodes{};  // of these, steps without a prefill
};

class StepHistory {
 public:
  // Without `price` steps are not predicted.
  StepHistory(std::string machine, PriceBatch price);
  ~StepHistory();
  StepHistory(const StepHistory&) = delete;
  StepHistory& operator=(const StepHistory&) = delete;

  // Does not wait for the prices of steps before.
  void add(const ServedStep& step);

  // The steps behind number `since`, of the last 600.
  [[nodiscard]] StepView view(std::int64_t since) const;

 private:
  struct Waiting {
    SeenStep step;
    Batch batch;
  };

  void price_all();
  void keep(const SeenStep& step);

  std::string machine_;
  PriceBatch price_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::deque<SeenStep> steps_;
  StepTotals all_, decodes_;
  std::int64_t next_number_ = 1;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace dculab::http
