// scenarios/*.yaml: one question, as the choices that a study starts from and the axes along which it varies them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/condition.hpp"
#include "config/gguf_format.hpp"
#include "config/groups_reader.hpp"
#include "config/speculative_reader.hpp"
#include "config/sweep_axis.hpp"
#include "core/batch.hpp"
#include "core/dtype.hpp"
#include "core/engine_options.hpp"
#include "core/serving_metrics.hpp"
#include "core/units.hpp"
#include "core/workload.hpp"
#include "fields/node.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/deployment.hpp"

namespace dculab::config {

inline constexpr std::string_view kScenarioSchema = "dculab/scenario/1";

// A folder with config.json or a name under scenarios/models, and the fields of its shape that the scenario changes.
struct ModelChoice {
  std::string name;
  std::map<std::string, int> overrides;  // by field: "num_key_value_heads" -> 8
};

// A single step, or requests to serve, as the scenario's keys say.
enum class WorkloadKind { step, serving };
// Which KV blocks decode attention walks: the sequence's own, or as many as the longest sequence of the batch has.
enum class KvPadding { none, longest };

// RequestWorkload::requests before the file has been read whose requests are all served.
inline constexpr int kAllRequests = 0;

struct Workload {
  WorkloadKind kind = WorkloadKind::step;
  // step
  Phase phase = Phase::decode;
  int batch = 1;
  int context_tokens = 1024;
  int cached_tokens = 0;  // of a prefill: a prefix that is in the cache already
  // serving
  RequestWorkload served;  // its vocabulary is the model's, its records are the file's
  std::string file;        // recorded requests (CSV) or conversations (JSON); empty: lengths are drawn
  KvPadding kv_padding = KvPadding::none;
};

// Threads that any command may be asked for.
inline constexpr int kMostThreads = 4096;
// Rounds that any command may be asked for, and untimed steps before each.
inline constexpr int kMostRepeats = 10000;

// How `--measure` runs the sweep on this machine.
struct Measure {
  int repeats = 7;
  int warm_up = 2;
  std::vector<Phase> phases;  // empty: the workload's own
  double held_out = 0.5;      // share of the points that calibration does not see
  int seed = 1;               // of the split
  int threads = 0;            // 0 = all cores
};

enum class Goal { maximize, minimize };
enum class Comparison { at_most, at_least };

struct Constraint {
  std::string metric;
  Comparison comparison = Comparison::at_most;
  double value = 0;  // in seconds, bytes or tokens per second, as the metric is
};

struct Objective {
  Goal goal = Goal::minimize;
  std::string metric = "step_time";
  std::vector<Constraint> subject_to;
};

// A metric to be made small or large, beside others.
struct Aim {
  Goal goal = Goal::minimize;
  std::string metric;
};

// The scenario with other values for some keys, held against the scenario as it is.
struct Variant {
  std::string name;
  std::string note;
  std::vector<Override> changes;
};

// What somebody published about a variant: its change against the baseline, or both figures, from which it follows; or
// about a variant or the baseline the figure alone (`value`).
struct ReportedFigure {
  std::string variant;
  std::string metric;
  std::vector<Override> at;  // the points it belongs to, by their keys' values; empty: every point
  double change = 0;         // variant / baseline - 1
  std::optional<double> baseline, value;

  [[nodiscard]] bool stands_alone() const { return value && !baseline; }
};

struct Compare {
  std::string baseline;  // its name
  std::string source;    // of what is reported
  std::vector<std::string> assumptions;
  std::vector<Variant> variants;
  std::vector<ReportedFigure> reported;
};

// Measured accuracy that a choice of KV heads is weighed against.
struct AccuracyChoice {
  std::string file;         // empty: the published curves that are shipped
  std::string model;        // whose accuracy it is: its query heads give the group sizes
  std::string metric;       // empty: the first that the file has of the model
  double tolerance = 0.05;  // accuracy that may be lost, relative to the model without merged heads
  double speed_tie = 0.05;  // speed that is given up for more KV heads
};

struct Scenario {
  std::string file;
  std::string question;
  ModelChoice model;
  std::vector<std::string> machines;    // names under hwmodels, or files
  std::string stack = "dculab";         // whose kernels run: a name under stacks, of a program, or a file
  std::vector<Node> machine_figures;    // what the scenario changes of them, by key: see machine_figure.hpp
  std::vector<Node> stack_figures;      // the same of the stack: see stack_figure.hpp
  std::optional<WeightFormat> weights;  // absent: the checkpoint's own dtype
  const GgufFormat* gguf = nullptr;     // where `weights` is named as one of GGUF's
  EngineOptions options;                // the defaults with the scenario's choices; see resolve_options
  SpeculationChoice speculation;        // beside options.speculative_config
  FewHeadsChoice few_heads;             // beside options.groups_by_load
  sim::Deployment deployment;
  std::string decode_machine;  // of decode replicas, as `machines`; empty: theirs
  Workload workload;
  std::vector<SweepAxis> sweep;
  Measure measure;
  Objective objective;
  std::vector<Aim> pareto;  // empty: no front is asked for
  std::vector<Condition> constraints;
  ServiceLevel slo;
  std::optional<Compare> compare;
  std::optional<AccuracyChoice> accuracy;
  std::vector<std::string> choose;  // axes to be decided at every point of the others
  std::vector<std::string> then;    // scenario files to study afterwards
  Node document;                    // what it was read from, overrides included
};

// A stack file as a scenario names it: beside the scenario, or as it stands. Names of stacks are left as they are.
[[nodiscard]] std::string stack_beside(const std::string& scenario_file, const std::string& name_or_file);

// Splits "key=value". Throws InputError that names --set.
[[nodiscard]] Override parse_override(const std::string& argument);

// Sets a dotted key of a scenario's document. A swept key is no longer swept; `machine` takes the place of `machines`.
// Messages about it name `origin`, or else --set.
void set_override(Node& document, const Override& change, const std::string& origin = "");

// Throws InputError with every problem of the file and of the overrides.
[[nodiscard]] Scenario read_scenario_file(const std::string& path, const std::vector<Override>& overrides = {});
[[nodiscard]] Scenario read_scenario(const std::string& file, const Node& document);

// A value of an axis, as set_key takes it; refusals name the axis.
[[nodiscard]] Node axis_node(const std::string& file, const std::string& key, const std::string& value);

// One point along an axis: the scenario with `key` set to `value` and no axis for it. Same checks as for the file.
void apply_axis(Scenario& scenario, const std::string& key, const std::string& value);

// The scenario with a variant's changes; without sweep and comparison. Same checks as for the file.
[[nodiscard]] Scenario with_changes(const Scenario& scenario, const Variant& variant);

// Whether `figure` belongs to this point.
[[nodiscard]] bool is_at(const ReportedFigure& figure, const Scenario& point);

// Every point of the sweep, first axis slowest; the scenario itself when it has no axes. Points have no axes left,
// and `choices` tells them apart. Throws InputError when they are more than 100,000, or one of them has problems.
struct SweepPoint {
  std::vector<Override> choices;
  Scenario scenario;
};
[[nodiscard]] std::vector<SweepPoint> sweep_points(const Scenario& scenario);

// Whether requests are all there from the start and of one length, as the closed form of sim/study/offline_run.hpp
// takes them.
[[nodiscard]] bool is_offline_run(const Workload& workload);

// The model with the scenario's changes. It may still have problems().
[[nodiscard]] ModelShape resolve_model(ModelShape model, const ModelChoice& choice);

// `defaults` with what the scenario states; weights as the checkpoint's where it states none.
[[nodiscard]] EngineOptions resolve_options(const Scenario& scenario, const ModelShape& model,
                                            EngineOptions defaults = {});

// What an objective or a constraint may name, and what its figures are.
enum class MetricKind { time, rate, size, count, energy, money };
struct Metric {
  std::string_view name;
  MetricKind kind;
};
[[nodiscard]] std::span<const Metric> metrics();

}  // namespace dculab::config
