#include "bindings/http/serve.hpp"

#include <sys/resource.h>
#include <sys/select.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

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

// The library waits with select(), which knows no descriptor above 1023; further connections wait in the kernel.
void limit_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= FD_SETSIZE) return;
  limit.rlim_cur = FD_SETSIZE;
  setrlimit(RLIMIT_NOFILE, &limit);
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

}  // namespace

void serve(const ServeQuestion& question, const std::function<void(const ServerReady&)>& on_ready) {
  Opened opened = open(question);
  const ServedModel& model = opened.model;
  StepHistory steps(question.machine, pricer(question, opened.options));
  ServerMetrics metrics(model.name, model.max_model_len, opened.options.enable_prefix_caching);
  std::function<void()> stop_server;  // set before anything can fail
  std::mutex stopping;
  engine::AsyncEngine engine(
      [&opened] {
        engine::OpenModel open = engine::open_model(std::move(opened.weights), opened.options, opened.asked);
        open.executor->set_op_timing(engine::OpTiming::off);
        return open;
      },
      opened.options, opened.options.max_num_seqs + question.most_waiting,
      {.on_tokens = [&metrics](const Sequence& sequence, int count) { metrics.saw_tokens(sequence, count); },
       .on_step = [&steps](const ServedStep& step) { steps.add(step); }},
      [&] {
        const std::lock_guard lock(stopping);
        if (stop_server) stop_server();
      });
  CompletionService service(model, engine, metrics);
  limit_descriptors();
  HttpOptions http = question.http;
  http.most_body_bytes = body_limit(model);
  http.most_connections = static_cast<std::size_t>(engine.most_requests()) + 64;  // some are left to refuse others
  HttpServer server(service, steps, http);
  const int port = server.bind();
  {
    const std::lock_guard lock(stopping);
    stop_server = [&server] { server.stop(); };
  }
  // The signal's own action ends the program: requests end with an error of their own, and connections are closed.
  const files::Undo when_interrupted([&] {
    engine.stop("the server is stopping");
    std::this_thread::sleep_for(kLastWords);
    server.stop();
  });
  on_ready({.url = url_of(http.host, port), .model = model.name, .no_chat = model.no_chat});
  if (!engine.thrown()) server.listen();
  {
    const std::lock_guard lock(stopping);
    stop_server = {};
  }
  if (const std::exception_ptr thrown = engine.thrown()) std::rethrow_exception(thrown);
}

}  // namespace dculab::http
