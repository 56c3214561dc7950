#include "study/scenario/step_question.hpp"

#include "config/yaml_text.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "fields/printable_text.hpp"

namespace dculab::study {

std::string kv_cache_dtype_option(const std::string& word) {
  std::string format = kv_format_word(word);
  const auto dtype = parse_dtype(format);
  if (!format.empty() && (!dtype || !is_kv_format(*dtype)))
    throw InputError("--kv-cache-dtype",
                     in_quotes(word) + " is no format of a KV cache; use one of " + kv_format_names() + kKvWordsHelp);
  return format;
}

config::Scenario step_scenario(const StepQuestion& question) {
  Node document =
      config::parse_yaml("command line", "schema: dculab/scenario/1\nquestion: How long does this step take?\n");
  const auto set = [&document](const std::string& option, const char* key, const std::string& value) {
    if (!value.empty()) config::set_override(document, {key, value}, option + " " + value);
  };
  const auto set_number = [&set](const char* option, const char* key, int value) {
    set(option, key, value == 0 ? "" : std::to_string(value));
  };
  set("--model", "model", question.model);
  set("--machine", "machine", question.machine);
  set("--phase", "workload.phase", question.phase);
  set_number("--batch", "workload.batch", question.batch);
  set_number("--context", "workload.context_tokens", question.context);
  set_number("--block-size", "kv_cache.block_size", question.block_size);
  set_number("--kv-heads", "model.num_key_value_heads", question.kv_heads);
  set("--kv-cache-dtype", "kv_cache.dtype", kv_cache_dtype_option(question.kv_cache_dtype));
  set("--weights", "weights", question.weights);
  set("--activations", "activations", question.activations);
  for (const std::string& change : question.set) config::set_override(document, config::parse_override(change));
  set("--stack", "stack", question.stack);  // which keeps the figures that --set gave a stack
  return config::read_scenario("command line", document);
}

}  // namespace dculab::study
