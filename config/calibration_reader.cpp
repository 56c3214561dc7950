#include "config/calibration_reader.hpp"

#include <set>

#include "config/step_words.hpp"
#include "sim/calibration/confidence.hpp"

namespace dculab::config {
namespace {

void read_dtypes(MapReader& reader, const char* key, std::set<Dtype>& seen) {
  std::vector<Dtype> dtypes;
  reader.required(key, dtypes);
  seen = {dtypes.begin(), dtypes.end()};
}

template <class T>
void read_words(MapReader& reader, const char* key, std::set<T>& seen, ChoiceView<T> choices) {
  std::vector<std::string> words;
  reader.required(key, words);
  if (words.empty()) return;
  for (const Node& word : reader.required(key)->children) {
    T value{};
    reader.read_choice(word, value, choices);
    seen.insert(value);
  }
}

void read_formats(MapReader& reader, sim::SeenFormats& formats) {
  read_dtypes(reader, "weights", formats.weights);
  read_words(reader, "activations", formats.activations, kActivationModes);
  read_dtypes(reader, "kv_cache_dtype", formats.kv_cache);
  read_words(reader, "kv_retention", formats.kv_retention, kRetentionPolicies);
  reader.finish();
}

void read_feature(MapReader& domain, const Node& node, sim::Range& range) {
  std::vector<double> ends;
  domain.optional(node.key, ends);
  if (ends.empty()) return;
  if (ends.size() != 2 || ends[0] > ends[1])
    return domain.complain(node, domain.path_to(node.key) + ": must be [least, largest]");
  range = {ends[0], ends[1]};
}

// How well prices of a stack hold, by kind.
void read_intervals(MapReader reader, sim::PointIntervals& intervals) {
  reader.required("rows", intervals.rows, at_least(0));
  for (const auto& [name, kind] : sim::kPriceKinds)
    reader.required(std::string(name).c_str(), intervals.factors[kind], between(1, sim::kWidestInterval));
  reader.finish();
}

}  // namespace

void read_calibration(MapReader reader, sim::Calibration& calibration) {
  if (MapReader intervals = reader.optional_map("intervals"); intervals.is_present()) {
    for (const Node& stack : intervals.node()->children)
      read_intervals(intervals.required_map(stack.key), calibration.intervals[stack.key]);
    intervals.finish();
    return reader.finish();
  }
  reader.required("held_out_steps", calibration.held_out_steps, at_least(1));
  reader.required("coverage", calibration.coverage, fraction());
  reader.required("interval_factor", calibration.interval_factor, between(1, sim::kWidestInterval));
  MapReader domain = reader.required_map("domain");
  if (domain.is_present())
    for (const Node& child : domain.node()->children) read_feature(domain, child, calibration.domain[child.key]);
  domain.finish();
  MapReader formats = reader.optional_map("formats");
  if (formats.is_present()) read_formats(formats, calibration.formats.emplace());
  reader.finish();
}

}  // namespace dculab::config
