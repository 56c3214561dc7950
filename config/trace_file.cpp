#include "config/trace_file.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "config/figure_keys.hpp"
#include "config/key_writer.hpp"
#include "config/trace_keys.hpp"
#include "fields/json_text.hpp"
#include "files/gzip.hpp"
#include "files/input.hpp"
#include "model/plan_step.hpp"

namespace dculab::config {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kLargestTrace = std::size_t{1} << 30;
constexpr std::size_t kMostSequencesInAll = 1 << 23;  // each takes memory, a run of equal ones is one line
constexpr std::size_t kMostLayersInAll = 1 << 28;     // likewise

enum class TraceSchema {
  one_kind,     // dculab/trace/1: all layers are alike, and what they are made of stands beside the model's sizes
  layer_kinds,  // dculab/trace/2
};
constexpr auto kSchemas = std::to_array<Choice<TraceSchema>>(
    {{kTraceSchema, TraceSchema::layer_kinds}, {"dculab/trace/1", TraceSchema::one_kind}});

// The first line: which schema the others have, and the header.
struct FirstLine {
  TraceSchema schema = TraceSchema::layer_kinds;
  TraceHeader header;
};

struct FirstLineKeys {
  using Target = FirstLine;
  static constexpr auto keys =
      std::tuple(word("schema", &FirstLine::schema, kSchemas, "what kind of file this is", kRequired),
                 inlined<HeaderKeys>([](auto& line) -> auto& { return line.header; }));
};

// A step of dculab/trace/1 as one of dculab/trace/2: what is not the model's goes to its only kind of layers.
void give_layer_kinds(Node& step) {
  Node* model = step.find("model");
  if (model == nullptr || model->kind != NodeKind::map) return;
  std::vector<std::string_view> of_model = names_of<ModelKeys>();
  std::erase_if(of_model,
                [](std::string_view key) { return key == "layer_kinds" || key == "layers" || key == "kv_sources"; });
  const auto end = model->children.end();
  const auto middle = std::stable_partition(model->children.begin(), end, [&](const Node& child) {
    return std::ranges::find(of_model, child.key) != of_model.end();
  });
  Node kind = map_node(), kinds = list_node();
  kind.place = kinds.place = model->place;
  std::move(middle, end, std::back_inserter(kind.children));
  model->children.erase(middle, end);
  kinds.children.push_back(std::move(kind));
  set_member(*model, "layer_kinds", std::move(kinds));
}

// The ops follow from the step; a step may leave all of them out.
void check_ops(const Node& node, const TraceStep& step, ProblemList& list) {
  if (step.op_names.empty()) return;
  const StepPlan plan = plan_step(step.model, step.options, step.batch);
  const auto same = [](const Op& op, const std::string& name) { return op.name == name; };
  if (std::ranges::equal(plan.ops, step.op_names, same)) return;
  std::string names;
  for (const Op& op : plan.ops) names += (names.empty() ? "" : ", ") + std::string(op.name);
  list.add(node, "ops: must be those that the step runs, in order: " + names + "; or none");
}

TraceStep read_step(const Node& node, ProblemList& list) {
  TraceStep step;
  read_section<TraceStepKeys>(MapReader(&node, "", list), step);
  if (!list.empty()) return step;
  for (const std::string& problem : problems(step.model)) list.add(node, "model: " + problem);
  for (const std::string& problem : problems(step.options)) list.add(node, "options: " + problem);
  if (list.empty())
    for (const std::string& problem : problems(step.options, step.model)) list.add(node, "options: " + problem);
  if (list.empty()) check_ops(node, step, list);
  return step;
}

// Bytes that are not UTF-8, say in a device name, must not stop a measurement from being saved.
std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

Trace read_trace(const std::string& file, const std::string& text) {
  ProblemList list(file);
  Trace trace;
  bool has_header = false;
  FirstLine first;
  int line = 0;
  std::size_t sequences = 0, layers = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string record = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (record.find_first_not_of(" \t\r") == std::string::npos) continue;
    Node node = parse_json(file, line, record);
    if (has_header) {
      if (first.schema == TraceSchema::one_kind) give_layer_kinds(node);
      trace.steps.push_back(read_step(node, list));
      sequences += trace.steps.back().batch.sequences.size();
      layers += trace.steps.back().model.layers.size();
      if (layers > kMostLayersInAll)
        throw InputError(
            file, line,
            "its steps have more than " + std::to_string(kMostLayersInAll) + " layers up to here; split the trace");
      if (sequences > kMostSequencesInAll)
        throw InputError(file, line,
                         "its steps have more than " + std::to_string(kMostSequencesInAll) +
                             " sequences up to here; split the trace");
    } else {
      read_section<FirstLineKeys>(MapReader(&node, "", list), first);
      list.throw_if_any();  // not a trace: its lines would all be wrong
      trace.header = first.header;
      has_header = true;
    }
  }
  if (!has_header) throw InputError(file, "is empty; a trace begins with a header line");
  list.throw_if_any();
  return trace;
}

Trace read_trace_file(const std::string& path) {
  return read_trace(path, files::unpacked(path, files::read_text(path, kLargestTrace), kLargestTrace));
}

std::string trace_json_lines(const Trace& trace) {
  std::string text = line(json_of<FirstLineKeys>({.header = trace.header}));
  for (const TraceStep& step : trace.steps) text += line(json_of<TraceStepKeys>(step));
  return text;
}

FileTree trace_tree() {
  FileValue header = map_of(keys_of<FirstLineKeys>()), step = map_of(keys_of<TraceStepKeys>());
  header.title = "header";
  step.title = "step";
  return {std::string(kTraceSchema),
          "one line of a trace: its header, which is the first line, or a step",
          {std::move(header), std::move(step)}};
}

}  // namespace dculab::config
