#include "bindings/http/server_measurement.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::http {
namespace {

constexpr int kPromptTokens = 256, kOutputTokens = 128;
// The library's client waits with select(), which takes no descriptor above 1023.
constexpr int kMostAtOnce = 960;

}  // namespace

config::VllmRun measure_server(const ServerQuestion& question, const study::BenchmarkQuestion& predicted,
                               const LoadProgress& progress) {
  if (predicted.model.empty())
    throw InputError("--server: name the model it serves by --model: its shape is predicted");
  if (predicted.machine.empty()) throw InputError("--server: name the machine it runs on by --machine");
  if (predicted.stack.empty()) throw InputError("--server: name the program that serves by --stack");
  const int at_once = question.max_concurrency > 0 ? question.max_concurrency : question.requests;
  if (std::min(at_once, question.requests) > kMostAtOnce)
    throw InputError("--requests",
                     "more than " + std::to_string(kMostAtOnce) + " are not sent at once; give a lower --concurrency");
  const ModelShape shape = read_model_shape(study::find_model(predicted.model));
  return load_server({.url = question.url,
                      .api_key = question.api_key,
                      .served_model = question.served_model,
                      .requests = question.requests,
                      .prompt_tokens = predicted.prompt_tokens > 0 ? predicted.prompt_tokens : kPromptTokens,
                      .output_tokens = predicted.output_tokens > 0 ? predicted.output_tokens : kOutputTokens,
                      .max_concurrency = question.max_concurrency,
                      .vocab_size = shape.vocab_size},
                     progress);
}

}  // namespace dculab::http
