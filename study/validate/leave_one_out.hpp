// The points of each machine (or family of them, or program) predicted from those of all others, beside the naive
// roofline.
#pragma once

#include <string>
#include <vector>

#include "sim/calibration/errors.hpp"
#include "study/validate/points_set.hpp"
#include "study/validate/scores.hpp"

namespace dculab::study {

// What can be left out: "machine", "family" (compute capability or target of the compiler), "vendor", "source",
// "stack", "software".
[[nodiscard]] const std::vector<std::string>& left_out_groups();

struct LeftOutPoint {
  std::string left_out;  // the machine, family or program that the calibration did not see
  ScoredRow row;
};

// What a source does to predictions of another vendor's machines: their median |error|, each machine left out in turn,
// after fits with and without the source.
struct SourceEffect {
  std::string source, vendor;
  double with = 0, without = 0;
};

// Every point that can be scored, predicted by a calibration that saw none of its machine's (or family's, program's)
// points; `by` is one of left_out_groups(). Programs are left out with all their versions. Throws InputError when the
// points have fewer than two of what is left out.
// `effects`, where given and `by` is "source": what each does to the other vendors.
[[nodiscard]] std::vector<LeftOutPoint> predict_left_out(PointSet& set, const std::string& by,
                                                         std::vector<SourceEffect>* effects = nullptr);

// Errors are of times (ScoredRow::time_error).
struct LeftOutScore {
  std::string left_out, kind;  // "all": over all of them
  sim::ErrorSummary ours, naive;
  double inside = 0;  // share of the measurements inside our interval
};

// Left out x kind, then each kind over all that was left out, then all.
[[nodiscard]] std::vector<LeftOutScore> score_left_out(const std::vector<LeftOutPoint>& points);

}  // namespace dculab::study
