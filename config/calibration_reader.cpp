#include "config/calibration_reader.hpp"

#include <set>

#include "config/key_description.hpp"
#include "config/step_words.hpp"
#include "sim/calibration/confidence.hpp"

namespace dculab::config {
namespace {

struct CalibrationKeys {
  using Target = sim::Calibration;
  static constexpr auto keys = std::tuple(
      value("held_out_steps", &sim::Calibration::held_out_steps, "that the fit did not see",
            {.bounds = at_least(1), .unit = "steps", .necessity = Necessity::required}),
      value("coverage", &sim::Calibration::coverage, "of the interval",
            {.bounds = fraction(), .unit = unit::share, .necessity = Necessity::required}),
      value("interval_factor", &sim::Calibration::interval_factor,
            "a measurement lies in [prediction / factor, prediction * factor]",
            {.bounds = between(1, sim::kWidestInterval), .unit = unit::ratio, .necessity = Necessity::required}));
};

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

void read_domain(MapReader domain, sim::Calibration& calibration) {
  if (domain.is_present())
    for (const Node& child : domain.node()->children) read_feature(domain, child, calibration.domain[child.key]);
  domain.finish();
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
    read_domain(reader.optional_map("domain"), calibration);
  } else {
    read_keys<CalibrationKeys>(reader, calibration);
    read_domain(reader.required_map("domain"), calibration);
  }
  MapReader formats = reader.optional_map("formats");
  if (formats.is_present()) read_formats(formats, calibration.formats.emplace());
  reader.finish();
}

std::vector<FileKey> calibration_keys() {
  std::vector<FileKey> keys = keys_of<CalibrationKeys>();
  for (FileKey& key : keys) {  // of one that learned from points there are `intervals` instead
    key.is_required = false;
    key.absent = "`intervals`";
  }
  FileKey feature{.key = "<feature>", .pattern = ".", .meaning = "least and largest value that was seen"};
  feature.values = {{.kind = ValueKind::list, .items = {{.kind = ValueKind::number}}}};
  keys.push_back(map_key("domain", "what was seen of steps, by feature", {std::move(feature)}));
  std::vector<FileKey> formats;
  for (const char* key : {"weights", "activations", "kv_cache_dtype", "kv_retention"}) {
    FileKey& list = formats.emplace_back(FileKey{.key = key, .meaning = "that ran", .is_required = true});
    list.values = {{.kind = ValueKind::list, .items = {FileValue{}}}};
  }
  keys.push_back(map_key("formats", "whose kernels ran", std::move(formats)));
  std::vector<FileKey> intervals{{.key = "rows", .meaning = "measured there, of this stack", .is_required = true}};
  intervals.front().values = {{.kind = ValueKind::whole, .bounds = at_least(0), .unit = "rows"}};
  for (const auto& [name, kind] : sim::kPriceKinds) {
    FileKey& factor = intervals.emplace_back(FileKey{.key = std::string(name), .is_required = true});
    factor.meaning = "a measurement lies in [prediction / factor, prediction * factor]";
    factor.values = {
        {.kind = ValueKind::number, .bounds = between(1, sim::kWidestInterval), .unit = std::string(unit::ratio)}};
  }
  FileKey stack{.key = "<stack>", .pattern = "."};
  stack.values = {{.kind = ValueKind::map, .keys = std::move(intervals)}};
  keys.push_back(map_key("intervals", "of points, by stack", {std::move(stack)}));
  return keys;
}

}  // namespace dculab::config
