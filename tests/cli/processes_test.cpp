// Processes of this machine that share a model: `run`, `bench`, `evaluate` and `study --measure` with
// --tensor-parallel-size and --enable-expert-parallel, or a deployment.
#include <algorithm>

#include "tests/cli/generous_cpu.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

// generous-cpu with links between its processes.
std::string linked_cpu() {
  std::string cpu = kGenerousCpu;
  cpu += R"(peer_link: {value: 4000 GB/s, kind: assumed, source: for this test}
peers: {value: 3, kind: assumed, source: for this test}
peer_latency: {value: 0.2 us, kind: assumed, source: for this test}
)";
  return cpu;
}

bool has_op(const std::string& trace, const std::string& name) {
  return trace.find("{\"name\":\"" + name + "\"") != std::string::npos;
}

TEST_CASE("two processes print the text of one", "[main]") {
  const Arguments one{"run",       "--model", "dculab-tiny",   "--prompt", "Once upon a time", "--max-tokens", "24",
                      "--threads", "2",       "--temperature", "0"};
  Arguments two = one;
  two.insert(two.end(), {"--tensor-parallel-size", "2"});
  const Finished alone = run_dculab(one), shared = run_dculab(two);
  CHECK(alone.exit_code == 0);
  CHECK(shared.exit_code == 0);
  CHECK(shared.out == alone.out);
}

TEST_CASE("prompts together, a mixture, experts divided by number, one thread for two processes: the same text",
          "[main]") {
  const Folder folder;
  const std::string prompts = folder.write("prompts.txt", "Once upon a time\nThe dog ran to\nTom and Lena\n");
  const auto text_of = [&](const std::string& model, const Arguments& more) {
    Arguments arguments{"run", "--model", model, "--prompts", prompts, "--max-tokens", "16", "--temperature", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run_dculab(arguments);
    INFO(finished.err);
    CHECK(finished.exit_code == 0);
    return finished.out;
  };
  for (const std::string model : {"dculab-tiny-gqa2", "dculab-tiny-mla-moe"}) {
    INFO(model);
    const std::string alone = text_of(model, {});
    CHECK(text_of(model, {"--tensor-parallel-size", "2"}) == alone);
    CHECK(text_of(model, {"--tensor-parallel-size", "2", "--threads", "1"}) == alone);
    if (model == "dculab-tiny-mla-moe")
      CHECK(text_of(model, {"--tensor-parallel-size", "2", "--enable-expert-parallel"}) == alone);
  }
}

TEST_CASE("bench writes the exchanges into the trace, and validate reads it") {
  const Folder folder;
  const std::string trace = folder.path("trace.jsonl"), experts = folder.path("experts.jsonl");
  const std::string cpu = folder.write("cpu.yaml", linked_cpu());
  const Arguments grid{"--phase", "decode", "--batch", "1,3", "--context", "40", "--repeats", "2", "--warm-up", "1"};
  const auto bench = [&](const std::string& model, const std::string& file, const Arguments& more) {
    Arguments arguments{"bench", "--model", model, "--tensor-parallel-size", "2", "--trace", file};
    arguments.insert(arguments.end(), grid.begin(), grid.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    CHECK(run_for_json(arguments).at("points").size() == 2);
    return read(file);
  };
  const std::string dense = bench("dculab-tiny", trace, {});
  for (const char* op : {"embedding_all_reduce", "attention_all_reduce", "mlp_all_reduce", "logits_all_gather"}) {
    INFO(op);
    CHECK(has_op(dense, op));
  }
  CHECK(dense.find("\"tensor_parallel_size\":2") != std::string::npos);
  CHECK(dense.find("2 processes of") != std::string::npos);
  const std::string mixture = bench("dculab-tiny-mla-moe", experts, {"--enable-expert-parallel"});
  for (const char* op : {"dispatch", "combine", "tokens_all_gather"}) {
    INFO(op);
    CHECK(has_op(mixture, op));
  }
  for (const std::string& file : {trace, experts})
    CHECK(run_for_json({"validate", file, "--machine", cpu}).at("points").size() == 2);
}

TEST_CASE("a measured study has the exchanges apart, predicted beside measured") {
  const Folder folder;
  const std::string cpu = folder.write("cpu.yaml", linked_cpu());
  const Json dense =
      run_for_json({"study", "measured/processes", "--measure", "--host", cpu, "--set", "measure.repeats=1",
                    "measure.warm_up=0", "model=dculab-tiny", "weights=bf16", "measure.threads=2"});
  const Json mixture = run_for_json({"study", "measured/processes_moe", "--measure", "--host", cpu, "--set",
                                     "measure.repeats=1", "measure.warm_up=0"});
  for (const Json& study : {dense, mixture}) {
    const auto with_exchanges =
        std::ranges::count_if(study.at("points"), [](const Json& point) { return point.contains("exchange_seconds"); });
    CHECK(with_exchanges > 0);
    CHECK(with_exchanges < std::ssize(study.at("points")));
    CHECK(study.at("exchange_error").at("count") == with_exchanges);
    for (const Json& point : study.at("points"))
      if (point.contains("exchange_seconds")) CHECK(point.at("exchange_seconds").at("measured").get<double>() > 0);
  }
}

TEST_CASE("evaluate judges a model that processes share") {
  const Folder folder;
  const std::string text =
      folder.write("text.txt", "Once upon a time there was a little dog. The dog ran to the tree.");
  const auto loss_with = [&](const Arguments& more) {
    Arguments arguments{"evaluate", "--model", "dculab-tiny", "--text", text, "--decode-steps", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_for_json(arguments).at("rows").at(0).at("text").at("perplexity").get<double>();
  };
  const double alone = loss_with({});
  CHECK(loss_with({"--tensor-parallel-size", "2"}) == Approx(alone).epsilon(1e-4));
}

TEST_CASE("what processes cannot share is refused in one line") {
  const Arguments run{"run", "--model", "dculab-tiny", "--prompt", "Once"};
  const auto refused = [&run](const Arguments& more, const std::vector<std::string>& parts) {
    Arguments arguments = run;
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refused(arguments, parts);
  };
  refused({"--tensor-parallel-size", "3"}, {"8 query heads do not divide over 3 devices"});
  refused({"--tensor-parallel-size", "2", "--device", "host-gpu"}, {"tensor_parallel_size 2", "--device cpu"});
  refused({"--tensor-parallel-size", "2", "--enable-expert-parallel"}, {"dculab-tiny", "has no experts to share"});
  refused({"--enable-expert-parallel"}, {"enable_expert_parallel", "tensor_parallel_size"});
  refused({"--tensor-parallel-size", "2", "--kv-retention", "heavy-hitters", "--window-tokens", "16",
           "--heavy-hitter-tokens", "16"},
          {"kv_retention heavy_hitters"});
  refused({"--tensor-parallel-size", "0"}, {"--tensor-parallel-size", "at least 1"});
  const Folder folder;
  check_refused({"study", "measured/processes", "--measure", "--host", folder.write("cpu.yaml", linked_cpu()), "--set",
                 "deployment.pipeline_parallel_size=2"},
                {"pipeline"});
}

}  // namespace
}  // namespace dculab::cli::test
