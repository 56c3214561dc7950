#include "config/benchmarks/llama_bench_results.hpp"

#include <algorithm>

#include "config/csv_rows.hpp"
#include "config/json_documents.hpp"
#include "core/error.hpp"

namespace dculab::config {
namespace {

// 'llama_bench', or 'test' before June 2025: INSERT INTO llama_bench (build_commit, ...) VALUES ('b1', ...);
constexpr std::string_view kInsert = "INSERT INTO ", kValues = ") VALUES (";

// The parts of `text` between `separator`s.
[[nodiscard]] std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  parts.emplace_back(text);
  return parts;
}

// "'b1', '512'": each value is quoted, and a quote within one is written as it is.
[[nodiscard]] std::vector<std::string> sql_values(std::string_view text) {
  if (text.size() < 2 || !text.starts_with('\'') || !text.ends_with('\'')) return {};
  return split(text.substr(1, text.size() - 2), "', '");
}

[[nodiscard]] Node node_at(int line, NodeKind kind) {
  Node node;
  node.kind = kind;
  node.place = node.key_place = {line, 0};
  return node;
}

[[nodiscard]] std::vector<Node> sql_rows(const std::string& text, ProblemList& problems) {
  std::vector<Node> rows;
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view statement = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (!statement.starts_with(kInsert)) continue;
    const std::size_t open = statement.find('('), values = statement.find(kValues), close = statement.rfind(')');
    Node row = node_at(line, NodeKind::map);
    if (open == std::string_view::npos || values == std::string_view::npos || close < values + kValues.size()) {
      problems.add(row, "an INSERT without VALUES; write the file again");
      continue;
    }
    const auto columns = split(statement.substr(open + 1, values - open - 1), ", ");
    const auto cells = sql_values(statement.substr(values + kValues.size(), close - values - kValues.size()));
    if (columns.size() != cells.size()) {
      problems.add(row, std::to_string(cells.size()) + " values, but " + std::to_string(columns.size()) + " columns");
      continue;
    }
    for (std::size_t index = 0; index < cells.size(); ++index) {
      Node& cell = row.children.emplace_back(node_at(line, NodeKind::scalar));
      cell.key = columns[index];
      cell.text = cells[index];
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

[[nodiscard]] std::vector<Node> json_rows(const std::string& file, const std::string& text) {
  std::vector<Node> rows;
  for (Node& document : json_documents(file, text)) {
    if (document.kind == NodeKind::list)
      std::ranges::move(document.children, std::back_inserter(rows));
    else
      rows.push_back(std::move(document));
  }
  return rows;
}

// "Q4_K_M" of "llama 8B Q4_K - Medium" and of "qwen3moe 30B.A3B Q4_K - Medium", "F16" of "gemma3 4B F16": what stands
// behind the number of parameters, in the words of llama-quantize.
[[nodiscard]] std::string quantization_of(const std::string& model_type) {
  const std::size_t first = model_type.find(' ');
  if (first == std::string::npos) return "";
  const std::size_t second = model_type.find(' ', first + 1);
  std::string format = second == std::string::npos ? "" : model_type.substr(second + 1);
  for (const std::string_view before : {"mostly ", "all ", "(guessed) "})
    if (const std::size_t at = format.find(before); at != std::string::npos) format.erase(at, before.size());
  for (const auto& [size, letter] :
       {std::pair(" - Small", "_S"), std::pair(" - Medium", "_M"), std::pair(" - Large", "_L")})
    if (const std::size_t at = format.find(size); at != std::string::npos) format = format.substr(0, at) + letter;
  return format.substr(0, format.find(' '));
}

// `devices` is "ROCm0/ROCm1" where some were chosen; otherwise all that `gpu_info` lists work: "AMD MI50, AMD MI50".
[[nodiscard]] int devices_of(const std::string& devices, const std::string& gpu_info, const std::string& split_mode) {
  if (split_mode == "none") return 1;
  const bool chosen = !devices.empty() && devices != "auto" && devices != "none";
  return 1 + static_cast<int>(chosen ? std::ranges::count(devices, '/') : std::ranges::count(gpu_info, ','));
}

void add_rate(MapReader& reader, BenchmarkResult& result) {
  const bool prompt = result.prompt_tokens.has_value(), output = result.output_tokens.has_value();
  BenchmarkFigure figure{.metric = BenchmarkMetric::total_rate};
  if (!output) figure.metric = BenchmarkMetric::prefill_rate;
  if (!prompt) figure.metric = BenchmarkMetric::decode_rate;
  reader.required("avg_ts", figure.value, above(0));
  reader.optional("stddev_ts", figure.deviation, at_least(0));
  if (figure.value > 0) result.figures.push_back(figure);
}

[[nodiscard]] BenchmarkResult read_llama_row(const Node& row, ProblemList& problems) {
  MapReader reader(&row, "", problems);
  BenchmarkResult result{.tool = BenchmarkTool::llama_bench, .label = {}, .program = "llama.cpp"};
  int prompt = 0, output = 0, depth = 0, micro_batch = 0;
  reader.required("n_prompt", prompt, between(0, kLongestContext));
  reader.required("n_gen", output, between(0, kLongestContext));
  reader.optional("n_depth", depth, between(0, kLongestContext));
  reader.optional("n_ubatch", micro_batch, between(1, kLongestContext));
  if (prompt + output == 0) problems.add(row, "n_prompt and n_gen are both 0: nothing was measured");
  if (prompt > 0) result.prompt_tokens = prompt, result.label = "pp" + std::to_string(prompt);
  if (output > 0) {
    result.output_tokens = output;
    result.label += (prompt > 0 ? "+tg" : "tg") + std::to_string(output);
  }
  if (depth > 0) result.prefix_tokens = depth, result.label += " @ d" + std::to_string(depth);
  if (micro_batch > 0) result.max_num_batched_tokens = micro_batch;
  const auto text_of = [&reader](const char* key) {
    const Node* node = reader.optional(key);
    return node != nullptr && node->kind == NodeKind::scalar ? node->text : std::string();
  };
  result.model = text_of("model_filename");
  result.hardware = text_of("gpu_info");
  result.devices = devices_of(text_of("devices"), result.hardware, text_of("split_mode"));
  if (text_of("n_gpu_layers") == "0" && !result.hardware.empty()) result.unmodelled = "n_gpu_layers 0";
  if (text_of("backends").find("RPC") != std::string::npos) result.unmodelled = "the backend RPC";
  if (result.hardware.empty()) result.hardware = text_of("cpu_info");
  result.weights = quantization_of(text_of("model_type"));
  result.kv_cache_dtype = text_of("type_k");
  add_rate(reader, result);
  return result;
}

}  // namespace

std::vector<BenchmarkResult> read_llama_bench(const std::string& file, const std::string& text, ProblemList& problems) {
  const char first = text[std::min(text.find_first_not_of(" \t\r\n"), text.size() - 1)];
  std::vector<Node> rows;
  if (first == '{' || first == '[')
    rows = json_rows(file, text);
  else if (text.find(kInsert) != std::string::npos)
    rows = sql_rows(text, problems);
  else
    rows = csv_rows(file, text, problems);
  std::vector<BenchmarkResult> results;
  for (const Node& row : rows) results.push_back(read_llama_row(row, problems));
  return results;
}

}  // namespace dculab::config
