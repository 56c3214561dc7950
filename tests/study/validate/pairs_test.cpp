// Pairs of published rows that differ in one thing alone, the KV block size, the group size or a constant of the
// kernel: predicted as measured in order and in size, uncalibrated. A pair is right where its ratio of times is within
// a third of the measured effect, or within half a percent, the noise of engines. Those that are not are listed, with
// what is known of the reason: a pair that comes right must leave the list.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "study/validate/point_scores.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

using config::PointKind;
using config::PublishedPoint;

constexpr double kNoise = 0.005;

enum class Differs : std::uint8_t { block_size, group, parameters };

struct Timed {
  PublishedPoint point;
  double measured = 0, predicted = 0;  // s
};

struct Pair {
  std::string name;                    // "ID of the one, ID of the other"
  double measured = 0, predicted = 0;  // time of the one / time of the other

  [[nodiscard]] bool is_right() const {
    const bool is_ordered = std::abs(measured - 1) <= kNoise || (measured > 1) == (predicted > 1);
    return is_ordered && std::abs(predicted - measured) <= std::max(kNoise, std::abs(measured - 1) / 3);
  }
};

[[nodiscard]] std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

// Whatever else two rows of a pair share.
[[nodiscard]] auto shared(const PublishedPoint& point, Differs differs) {
  const bool by_block = differs == Differs::block_size, by_group = differs == Differs::group;
  const bool by_parameters = differs == Differs::parameters;
  return std::tuple(point.kind, point.machine, point.devices, by_parameters ? "" : point.software, point.model,
                    point.weights, point.kv_dtype, by_block ? std::nullopt : point.kv_block_size, point.batch,
                    point.prompt_tokens, point.output_tokens, point.context_tokens, point.heads,
                    by_group ? std::nullopt : point.kv_heads, point.head_size, point.clock,
                    by_parameters ? first_word(point.kernel) : point.kernel);
}

[[nodiscard]] int value_of(const PublishedPoint& point, Differs differs) {
  if (differs == Differs::block_size) return point.kv_block_size.value_or(0);
  if (differs == Differs::group) return point.kind == PointKind::attention_decode ? point.kv_heads.value_or(0) : 0;
  return point.kernel.find("block_m=") != std::string::npos ? point.line : 0;
}

using Shared = decltype(shared({}, {}));

[[nodiscard]] std::map<Shared, std::vector<Timed>> timed_rows(PointSet& set, Differs differs) {
  std::map<Shared, std::vector<const ReadPoint*>> alike;
  for (const ReadPoint& read : set.points)
    if (read.is_scored() && value_of(read.point, differs) > 0) alike[shared(read.point, differs)].push_back(&read);
  std::map<Shared, std::vector<Timed>> timed;
  for (const auto& [key, rows] : alike) {
    if (rows.size() < 2) continue;
    for (const ReadPoint* read : rows) {
      const double predicted = score_point(*read, set.runs, false).predicted;
      const bool is_time = read->point.unit == "s";
      timed[key].push_back(
          {read->point, is_time ? read->point.value : 1 / read->point.value, is_time ? predicted : 1 / predicted});
    }
    std::ranges::sort(timed[key], {}, [differs](const Timed& row) { return value_of(row.point, differs); });
  }
  return timed;
}

[[nodiscard]] std::vector<Pair> pairs(PointSet& set, Differs differs) {
  std::vector<Pair> found;
  for (const auto& [key, rows] : timed_rows(set, differs))
    for (auto one = rows.begin(); one != rows.end(); ++one)
      for (auto other = one + 1; other != rows.end(); ++other)
        if (value_of(one->point, differs) != value_of(other->point, differs))
          found.push_back({one->point.id + ", " + other->point.id, one->measured / other->measured,
                           one->predicted / other->predicted});
  return found;
}

struct Files {
  PointSet first = read_point_set({DCULAB_SOURCE_DIR "/tests/data/published_points.csv"});
  PointSet second = read_point_set({DCULAB_SOURCE_DIR "/tests/data/measured_points_2.csv"});

  [[nodiscard]] std::vector<Pair> all(Differs differs) {
    std::vector<Pair> found = pairs(first, differs);
    for (Pair& pair : pairs(second, differs)) found.push_back(std::move(pair));
    return found;
  }
};

Files& files() {
  static Files read;
  return read;
}

// Checks all but those in `wrong`, and that those are still wrong.
void check_but(const std::vector<Pair>& all, std::set<std::string> wrong) {
  for (const Pair& pair : all) {
    CAPTURE(pair.name, pair.measured, pair.predicted);
    CHECK(pair.is_right() == (wrong.erase(pair.name) == 0));
  }
  CHECK(wrong.empty());
}

TEST_CASE("pairs of block sizes are in order, and apart as measured", "[once]") {
  const std::vector<Pair> all = files().all(Differs::block_size);
  CHECK(all.size() == 34);
  check_but(all, {
                     // Llama-2-7B, 64 requests on 40 GB, blocks of 8 and 16: memory holds two thirds of them, 1.6 %
                     // measured, 0.5 here.
                     "request-latency-1ac42a8d, request-latency-6755df25",
                     // Llama-3-8B, 32 requests, blocks of 8 and of 16, 32 and 64: 17 to 18 % measured, 11 to 12 here,
                     // and of 16 and 64 1.3 and 0.8. The host's 2 ms a step, an assumption, are no block's.
                     "request-latency-c32002d5, request-latency-7a523bc6",
                     "request-latency-c32002d5, request-latency-c652c36a",
                     "request-latency-c32002d5, request-latency-f14666c7",
                     "request-latency-a5114917, request-latency-97efbc8c",
                     // Single tokens measured 3 and 5 % faster than blocks of 16, of kernels of 12 to 15 us; at other
                     // lengths alike, or slower by a tenth of a microsecond, the last digit: 0.6 to 0.7 %, 0.1 here.
                     "attention-decode-ccb3fc7d, attention-decode-647ae25a",
                     "attention-decode-344ac39f, attention-decode-f11b0aa6",
                     "attention-decode-c7c03674, attention-decode-3e0d376a",
                     "attention-decode-bc8b5bf1, attention-decode-ca54da16",
                     "attention-decode-aef84a3f, attention-decode-efcc9768",
                     // CK's prefill of single tokens takes 15 % longer than of blocks of 16, here 1: its rows have
                     // addresses of their own then, and what that costs its loads into LDS is not known.
                     "attention-prefill-f59824a9, attention-prefill-ed3042e4",
                 });
}

TEST_CASE("kernels of other tiles are in order, and apart as measured", "[once]") {
  const std::vector<Pair> all = files().all(Differs::parameters);
  CHECK(all.size() == 13);
  check_but(all, {
                     // AITER's prefill of 4,096 tokens with heads of 512 at 16 rows and tiles of 32, and at 64 and 16:
                     // 41 % apart, here 77; of 16,384 tokens 72 and 87.
                     "attention-prefill-cda9d90f, attention-prefill-f4a2a507",
                     // Prefills of 4,096 tokens at 32 rows and 64: 58 % apart, here 78.
                     "attention-prefill-6cda9453, attention-prefill-db484cb6",
                 });
  for (const Pair& pair : all) CHECK((pair.measured > 1) == (pair.predicted > 1));
}

TEST_CASE("groups of other sizes are apart as measured", "[once]") {
  std::vector<double> errors;  // of the ratio of two times
  for (const Pair& pair : files().all(Differs::group)) errors.push_back(std::abs(pair.predicted / pair.measured - 1));
  CHECK(errors.size() == 24);
  std::ranges::nth_element(errors, errors.begin() + std::ssize(errors) / 2);
  CAPTURE(errors[errors.size() / 2]);
  CHECK(errors[errors.size() / 2] < 0.10);  // 0.07 is wanted
}

}  // namespace
}  // namespace dculab::study
