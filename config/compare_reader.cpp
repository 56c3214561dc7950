#include "config/compare_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "config/key_description.hpp"
#include "config/scenario_document.hpp"
#include "config/scenario_reader.hpp"

namespace dculab::config {
namespace {

// What a run of requests, or a step, has a figure for.
constexpr std::array<std::string_view, 9> kCompared{"step_time",
                                                    "speed_up",  // of drafts
                                                    "total_time",
                                                    "latency_mean",
                                                    "requests_per_second",
                                                    "tokens_per_second",
                                                    "output_tokens_per_second",
                                                    "input_tokens_per_second_per_node",
                                                    "output_tokens_per_second_per_node"};

// "-5.59 %"
void read_percent(MapReader& reader, const Node& node, double& share) {
  Node number = node;
  const std::size_t sign = number.text.find('%');
  const bool ends_there = sign != std::string::npos && sign + 1 == number.text.size();
  if (node.kind != NodeKind::scalar || !ends_there)
    return reader.complain(node, reader.path_to(node.key) + ": must be a percentage such as -5.59 %");
  number.text = number.text.substr(0, number.text.find_last_not_of(' ', sign - 1) + 1);
  double value = 0;
  reader.read(number, value, between(-1e6, 1e6));
  share = value / 100;
}

// "52.30 s", or a bare rate.
void read_figure(MapReader& reader, std::string_view key, const std::string& metric, std::optional<double>& figure) {
  const Node* node = reader.optional(key);
  if (node == nullptr) return;
  const auto found =
      std::find_if(metrics().begin(), metrics().end(), [&metric](const Metric& each) { return each.name == metric; });
  double value = 0;
  if (found != metrics().end() && found->kind == MetricKind::time) {
    Seconds seconds;
    reader.read(*node, seconds, above(0));
    value = seconds.value();
  } else {
    reader.read(*node, value, above(0));
  }
  figure = value;
}

// Keys and scalars of a map, as overrides.
std::vector<Override> read_pairs(MapReader& reader, const Node* node) {
  std::vector<Override> pairs;
  if (node == nullptr) return pairs;
  if (node->kind != NodeKind::map) {
    reader.complain(*node, reader.path_to(node->key) + ": must be a map such as {kv_cache.dtype: fp8_e4m3}");
    return pairs;
  }
  for (const Node& child : node->children) {
    if (child.kind != NodeKind::scalar) reader.complain(child, child.key + ": must be a word or a number");
    pairs.emplace_back(child.key, child.text);
  }
  return pairs;
}

// Tries a variant's changes, so that a wrong one is reported with its place.
void try_changes(const Node* changes, Node document, ProblemList& problems) {
  if (changes == nullptr || changes->kind != NodeKind::map) return;
  for (const char* other : {"sweep", "compare", "accuracy", "constraints"}) erase_key(document, other);
  for (const Node& change : changes->children) {
    Node tried = document;
    Node value = change;
    try {
      set_key(tried, change.key, std::move(value));
    } catch (const InputError&) {
      problems.add(change.key_place, change.origin, "changes." + change.key + ": not a key of a scenario");
      continue;
    }
    Scenario variant;
    read_sections(variant, tried, problems);
  }
}

struct VariantKeys {
  using Target = Variant;
  static constexpr auto keys =
      std::tuple(value("name", &Variant::name, "of the variant", {.necessity = Necessity::required}),
                 value("note", &Variant::note, "what is to be known of it"));
};

void read_variant(const Node& node, Compare& compare, const Node& document, ProblemList& problems) {
  MapReader reader(&node, "compare.variants", problems);
  Variant variant;
  read_keys<VariantKeys>(reader, variant);
  const Node* changes = reader.required("changes");
  variant.changes = read_pairs(reader, changes);
  try_changes(changes, document, problems);
  const bool known = variant.name == compare.baseline ||
                     std::any_of(compare.variants.begin(), compare.variants.end(),
                                 [&variant](const Variant& each) { return each.name == variant.name; });
  if (known && !variant.name.empty()) reader.complain(node, "compare.variants: two are called " + variant.name);
  compare.variants.push_back(std::move(variant));
  reader.finish();
}

// The point of the sweep that a figure belongs to: a value of an axis, or of a key that the document has.
void read_point(MapReader& reader, const Scenario& scenario, const Node& document, ReportedFigure& figure) {
  const Node* at = reader.optional("at");
  figure.at = read_pairs(reader, at);
  if (at == nullptr || at->kind != NodeKind::map) return;
  for (const Node& child : at->children) {
    const auto axis = std::find_if(scenario.sweep.begin(), scenario.sweep.end(),
                                   [&child](const SweepAxis& each) { return each.key == child.key; });
    const bool known = axis == scenario.sweep.end()
                           ? find_key(document, child.key) != nullptr
                           : std::find(axis->values.begin(), axis->values.end(), child.text) != axis->values.end();
    if (!known)
      reader.complain(child, reader.path_to("at") + "." + child.key + ": no point of the study has " + child.text);
  }
}

void read_reported(const Node& node, Compare& compare, const Scenario& scenario, const Node& document,
                   ProblemList& problems) {
  MapReader reader(&node, "compare.reported", problems);
  ReportedFigure figure;
  Choices<std::string> variants{{compare.baseline, compare.baseline}}, compared;
  for (const Variant& variant : compare.variants) variants.emplace_back(variant.name, variant.name);
  for (const std::string_view metric : kCompared) compared.emplace_back(metric, std::string(metric));
  reader.required("variant", figure.variant, variants);
  reader.required("metric", figure.metric, compared);
  read_point(reader, scenario, document, figure);
  if (const Node* change = reader.optional("change")) read_percent(reader, *change, figure.change);
  read_figure(reader, "baseline", figure.metric, figure.baseline);
  read_figure(reader, "value", figure.metric, figure.value);
  const bool both = figure.baseline && figure.value;
  if ((node.find("change") != nullptr) == (figure.baseline || figure.value) || (figure.baseline && !figure.value))
    reader.complain(node, "compare.reported: needs either change, or both baseline and value, or value alone");
  if (figure.variant == compare.baseline && !figure.variant.empty() && !figure.stands_alone())
    reader.complain(node, "compare.reported: the baseline changes nothing; give its value alone");
  if (both) figure.change = *figure.value / *figure.baseline - 1;
  compare.reported.push_back(std::move(figure));
  reader.finish();
}

// Calls read(child) for each map of a list.
template <class Read>
void read_maps(MapReader& reader, const Node* list, Read read) {
  if (list == nullptr) return;
  if (list->kind != NodeKind::list)
    return reader.complain(*list, reader.path_to(list->key) + ": must be a list of maps");
  for (const Node& child : list->children) read(child);
}

struct CompareKeys {
  using Target = Compare;
  static constexpr auto keys = std::tuple(
      value("baseline", &Compare::baseline, "a name for the unchanged scenario", {.necessity = Necessity::required}),
      value("source", &Compare::source, "who published what is reported", {.absent = "needed with `reported`"}),
      value("assumptions", &Compare::assumptions, "texts that are printed above the tables"));
};

void read_variants(MapReader reader, Scenario& scenario, const Node& document) {
  if (!reader.is_present()) return;
  ProblemList& problems = reader.problems();
  Compare compare;
  read_keys<CompareKeys>(reader, compare);
  read_maps(reader, reader.required("variants"),
            [&](const Node& child) { read_variant(child, compare, document, problems); });
  read_maps(reader, reader.optional("reported"),
            [&](const Node& child) { read_reported(child, compare, scenario, document, problems); });
  if (!compare.reported.empty() && compare.source.empty())
    reader.complain(*reader.node(), "compare.source: missing; say who reported the figures");
  reader.finish();
  scenario.compare = std::move(compare);
}

struct AccuracyKeys {
  using Target = AccuracyChoice;
  static void read_tolerance(MapReader& reader, const Node& node, AccuracyChoice& accuracy) {
    read_percent(reader, node, accuracy.tolerance);
  }
  static void read_speed_tie(MapReader& reader, const Node& node, AccuracyChoice& accuracy) {
    read_percent(reader, node, accuracy.speed_tie);
  }
  static constexpr Shape kPercent{.is_text = true};
  static constexpr auto keys = std::tuple(
      value("file", &AccuracyChoice::file,
            "an accuracy file (its path, or relative to the scenario): CSV, or the output of `dculab evaluate --format "
            "json`",
            {.absent = "published curves"}),
      value("model", &AccuracyChoice::model,
            "the model whose curve is used. Choices are matched by group size, so it need not be the scenario's model",
            {.necessity = Necessity::required}),
      value("metric", &AccuracyChoice::metric,
            "`perplexity`, `choice_accuracy`, `recall_accuracy` or a benchmark of the file; of several rows with one "
            "group size the best counts",
            {.absent = "the model's first"}),
      shaped("tolerance", &read_tolerance, kPercent, "the largest loss, relative to group size 1",
             {.unit = "%", .absent = "5 %"}),
      shaped("speed_tie", &read_speed_tie, kPercent, "speed that is given up to keep more KV heads",
             {.unit = "%", .absent = "5 %"}));

  static void check(MapReader& reader, AccuracyChoice& accuracy) {
    for (const auto& [key, share] : {std::pair("tolerance", accuracy.tolerance), {"speed_tie", accuracy.speed_tie}})
      if (share < 0) reader.complain(*reader.node(), reader.path_to(key) + ": must not be negative");
  }
};

void read_accuracy(MapReader reader, Scenario& scenario) {
  if (!reader.is_present()) return;
  AccuracyChoice accuracy;
  read_section<AccuracyKeys>(std::move(reader), accuracy);
  scenario.accuracy = std::move(accuracy);
}

[[nodiscard]] FileKey list_of_maps(std::string key, std::string meaning, std::vector<FileKey> keys) {
  FileKey list{.key = std::move(key), .meaning = std::move(meaning), .absent = "none"};
  FileValue& value = list.values.emplace_back(FileValue{.kind = ValueKind::list});
  value.items.push_back(FileValue{.kind = ValueKind::map, .keys = std::move(keys)});
  return list;
}

[[nodiscard]] FileKey text_key(std::string key, std::string meaning, std::string absent) {
  FileKey text{.key = std::move(key), .meaning = std::move(meaning), .absent = std::move(absent)};
  text.values = {{.kind = ValueKind::text}};
  return text;
}

// What was published of a variant.
[[nodiscard]] std::vector<FileKey> reported_keys(const FileKey& settings) {
  FileKey at = settings;
  at.key = "at";
  at.meaning = "the points of the sweep to which it applies";
  at.absent = "every point";
  FileKey metric{.key = "metric", .meaning = "what was published", .is_required = true};
  FileValue& words = metric.values.emplace_back(FileValue{.kind = ValueKind::word});
  for (const std::string_view each : kCompared) words.words.emplace_back(each);
  FileKey variant = text_key("variant", "of which it was published: a variant, or the baseline", "");
  variant.is_required = true;
  std::vector<FileKey> keys{
      std::move(variant), std::move(metric), std::move(at),
      text_key("change", "`-5.59 %`: against the baseline", "`baseline` and `value`, or `value`")};
  for (const char* key : {"baseline", "value"}) {
    FileKey& figure = keys.emplace_back(text_key(key, "the figure itself, a time with its unit", "`change`"));
    figure.values.push_back({.kind = ValueKind::number, .bounds = above(0)});
  }
  return keys;
}

}  // namespace

void read_compare(Scenario& scenario, const Node& document, ProblemList& problems) {
  MapReader reader(&document, "", problems);
  read_variants(reader.optional_map("compare"), scenario, document);
  read_accuracy(reader.optional_map("accuracy"), scenario);
  if (scenario.compare && scenario.accuracy)
    reader.complain(*document.find("accuracy"), "accuracy: compare stands there too; keep one of them");
}

std::vector<FileKey> compare_keys(const FileKey& settings) {
  std::vector<FileKey> variant = keys_of<VariantKeys>();
  FileKey& changes = variant.emplace_back(settings);
  changes.key = "changes";
  changes.meaning = "any keys above, dotted, that change a prediction, including `machine`, `stack` and their figures";
  changes.is_required = true;
  std::vector<FileKey> keys = keys_of<CompareKeys>();
  FileKey& variants =
      keys.emplace_back(list_of_maps("variants", "the scenario with other values for some keys", variant));
  variants.is_required = true;
  variants.absent.clear();
  keys.push_back(list_of_maps("reported", "what somebody published about variants", reported_keys(settings)));
  return keys;
}

std::vector<FileKey> accuracy_keys() { return keys_of<AccuracyKeys>(); }

}  // namespace dculab::config
