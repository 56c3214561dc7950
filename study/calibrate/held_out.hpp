// What calibrating on one part of a trace says about the rest: the error of every op, and what it would have cost to
// follow the predictions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/trace.hpp"
#include "sim/calibration/errors.hpp"
#include "sim/calibration/hold_out.hpp"
#include "sim/study/measured_choices.hpp"

namespace dculab::study {

// By op, over the held-out steps that have durations of ops.
[[nodiscard]] std::map<std::string, sim::ErrorSummary> held_out_op_errors(const sim::HoldOutScore& score,
                                                                          const std::vector<TraceStep>& steps);

// The KV block size, decided for each number of KV heads by the predictions of the fitted machine, in measured time.
// All steps; nothing for KV heads of which no two block sizes were measured on the same batches.
[[nodiscard]] std::map<int, sim::Regret> block_size_regrets(const sim::HoldOutScore& score,
                                                            const std::vector<TraceStep>& steps);

// What the processes of a step spend on exchanging results.
struct ExchangeTimes {
  Seconds predicted, measured;
};
// Nothing where the step is not divided. Precondition: it has durations of ops.
[[nodiscard]] std::optional<ExchangeTimes> exchange_times(const TraceStep& step, const sim::Machine& machine);

}  // namespace dculab::study
