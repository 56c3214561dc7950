#include "bindings/http/serve.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "bindings/http/serving_limits.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/generate/generator.hpp"
#include "engine/speculation/draft_source.hpp"
#include "fields/utf8.hpp"
#include "files/interruption.hpp"
#include "sim/memory/cache_pollution.hpp"
#include "study/answer/batch_pricer.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/step_question.hpp"

namespace dculab::http {
namespace {

namespace fs = std::filesystem;

// For requests that are being answered to be told so.
constexpr auto kLastWords = std::chrono::milliseconds(200);

// What is opened before the engine is.
struct Opened {
  ServedModel model;
  engine::GeneratorOptions asked;
  EngineOptions options;
  engine::ModelWeights weights;
};

void read_chat(const fs::path& folder, ServedModel& model) {
  model.no_chat = folder.string() + " has no chat_template; completions are served";
  try {
    model.chat = engine::read_chat_template(folder);
    if (model.chat) model.no_chat.clear();
  } catch (const InputError& error) {
    model.no_chat = error.what();
  }
}

[[nodiscard]] std::string name_of(const fs::path& folder, const std::string& asked) {
  std::string name = asked.empty() ? fs::absolute(folder).lexically_normal().filename().string() : asked;
  if (name.empty()) name = fs::absolute(folder).lexically_normal().parent_path().filename().string();
  require_utf8("--served-model-name", name);
  return name;
}

[[nodiscard]] Opened open(const ServeQuestion& question) {
  const fs::path folder = study::find_model(question.model);
  Opened opened{.model = {.name = name_of(folder, question.served_name),
                          .tokenizer = engine::Tokenizer::load(folder / "tokenizer.json"),
                          .defaults = read_generation_config(folder)},
                .asked = {},
                .options = {},
                .weights = engine::load_weights(folder, question.generator.weight_memory)};
  read_chat(folder, opened.model);
  opened.asked = engine::options_for_folder(folder, opened.model.tokenizer, question.generator);
  opened.options = engine::served_options(opened.asked, opened.weights.shape);
  if (!question.generator.speculative_model.empty())
    engine::require_same_tokens(folder, question.generator.speculative_model);
  opened.model.max_model_len = opened.weights.shape.max_position_embeddings;
  opened.model.vocab_size = opened.weights.shape.vocab_size;
  return opened;
}

// Prices steps of the model on a machine, whose shared caches others may have emptied between two of them.
[[nodiscard]] PriceBatch pricer(const ServeQuestion& question, const EngineOptions& options) {
  if (question.machine.empty()) return {};
  if (options.speculative_config.enabled())
    throw InputError("--machine", "prices steps without drafts; leave the options that draft out");
  const study::StepQuestion step{.model = question.model,
                                 .machine = question.machine,
                                 .block_size = options.block_size,
                                 .kv_cache_dtype = std::string(name(options.kv_cache_dtype)),
                                 .weights = {},
                                 .set = {}};
  auto prices = std::make_shared<study::BatchPricer>(study::step_scenario(step));
  return [prices, warmth = sim::CacheWarmth(prices->machine())](const Batch& batch, Seconds begin) mutable {
    Batch priced = batch;
    priced.cold_share = warmth.cold_share(begin);
    return prices->time_of(std::move(priced));
  };
}

// A token takes some 4 bytes of text, or 7 as a number; JSON may write a character in 6. What many clients send at a
// time must fit into memory.
[[nodiscard]] std::size_t body_limit(const ServedModel& model) {
  constexpr std::size_t kLeast = std::size_t{1} << 20, kMost = std::size_t{16} << 20, kBytesPerToken = 64;
  return std::clamp(kBytesPerToken * static_cast<std::size_t>(model.max_model_len), kLeast, kMost);
}

[[nodiscard]] std::string url_of(const std::string& host, int port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return "http://" + (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

[[nodiscard]] HttpOptions http_options(const ServeQuestion& question, const ServedModel& model,
                                       const ServingLimits& limits) {
  HttpOptions http = question.http;
  http.most_body_bytes = body_limit(model);
  http.most_connections = limits.most_connections;
  return http;
}

// Stops a server that is there later than the engine, and goes before it.
class ServerStop {
 public:
  void set(std::function<void()> stop) {
    const std::lock_guard lock(mutex_);
    stop_ = std::move(stop);
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    if (stop_) stop_();
  }

 private:
  std::mutex mutex_;
  std::function<void()> stop_;
};

// Takes connections until the server is stopped, by the engine's failure or a signal.
void take_connections(engine::AsyncEngine& engine, HttpServer& server, ServerStop& stop,
                      const std::function<void()>& on_ready) {
  stop.set([&server] { server.stop(); });
  // The signal's own action ends the program: requests end with an error of their own, and connections are closed.
  const files::Undo when_interrupted([&] {
    engine.stop("the server is stopping");
    std::this_thread::sleep_for(kLastWords);
    server.stop();
  });
  on_ready();
  if (!engine.thrown()) server.listen();
  stop.set({});
  if (const std::exception_ptr thrown = engine.thrown()) std::rethrow_exception(thrown);
}

}  // namespace

void serve(const ServeQuestion& question, const std::function<void(const ServerReady&)>& on_ready) {
  if (question.http.host.empty()) throw InputError("--host", "is empty; 0.0.0.0 listens on all addresses");
  Opened opened = open(question);
  const ServedModel& model = opened.model;
  const ServingLimits limits = serving_limits(opened.options.max_num_seqs, question.most_waiting, free_descriptors());
  StepHistory steps(question.machine, pricer(question, opened.options));
  ServerMetrics metrics(model.name, model.max_model_len, opened.options.enable_prefix_caching);
  ServerStop stop;
  engine::AsyncEngine engine(
      [&opened] {
        engine::OpenModel open = engine::open_model(std::move(opened.weights), opened.options, opened.asked);
        open.executor->set_op_timing(engine::OpTiming::off);
        return open;
      },
      opened.options, limits.most_requests,
      {.on_tokens = [&metrics](const Sequence& sequence, int count) { metrics.saw_tokens(sequence, count); },
       .on_step = [&steps](const ServedStep& step) { steps.add(step); }},
      [&stop] { stop.stop(); });
  CompletionService service(model, engine, metrics);
  HttpServer server(service, steps, http_options(question, model, limits));
  const int port = server.bind();
  take_connections(engine, server, stop, [&] {
    on_ready({.url = url_of(question.http.host, port),
              .model = model.name,
              .no_chat = model.no_chat,
              .fewer_wait = limits.less_than_asked});
  });
}

}  // namespace dculab::http
