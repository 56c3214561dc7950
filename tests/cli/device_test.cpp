// `--device` of run and bench: the GPU kernels on the host, and GPUs that are not there.
#include <filesystem>
#include <tuple>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

Arguments run_on(const std::string& device) {
  return {"run",           "--model", "dculab-tiny", "--prompt", "Once upon a time", "--max-tokens", "8",
          "--temperature", "0",       "--device",    device};
}

TEST_CASE("the GPU kernels on the host write what the CPU writes") {
  const Json cpu = run_for_json(run_on("cpu")), gpu = run_for_json(run_on("host-gpu"));
  CHECK(cpu.at("completions").at(0).at("token_ids").size() == 8);
  CHECK(gpu.at("completions").at(0) == cpu.at("completions").at(0));
}

TEST_CASE("devices that are not there, not built in or not devices") {
  check_refused(run_on("gpu"), {"--device", "'gpu' is not a device; use cpu, host-gpu, hip:0 or cuda:0"});
  check_refused({"bench", "--model", "dculab-tiny", "--device", "hip"}, {"--device", "'hip' is not a device"});
  // Without HIP: how to build with it. With it: that there is no such device.
  for (const char* device : {"hip:97", "cuda:97"}) {
    check_refused(run_on(device), {});
    check_refused({"bench", "--model", "dculab-tiny", "--device", device}, {});
  }
}

TEST_CASE("a bench of the GPU kernels writes a trace that validate reads") {
  const Folder folder;
  const std::string trace = folder.path("trace.jsonl");
  const Json bench =
      run_for_json({"bench", "--model", "dculab-tiny", "--device", "host-gpu", "--phase", "prefill,decode", "--context",
                    "20", "--kv-cache-dtype", "f16,fp8_e4m3", "--repeats", "1", "--warm-up", "0", "--trace", trace});
  REQUIRE(bench.at("points").size() == 4);
  for (const Json& point : bench.at("points")) CHECK(point.at("step_seconds").get<double>() > 0);
  const Json scores = run_for_json({"validate", trace, "--machine", "z100"});
  CHECK(scores.at("refused").empty());  // fibres are slower than any GPU
  REQUIRE(scores.at("points").size() == 4);
  for (std::size_t index = 0; index < 4; ++index) {
    CHECK(scores.at("points")[index].at("id") == bench.at("points")[index].at("id"));
    CHECK(scores.at("points")[index].at("measured").get<double>() ==
          Approx(bench.at("points")[index].at("step_seconds").get<double>()));
  }
  check_refused({"bench", "--model", "dculab-tiny", "--device", "host-gpu", "--kv-cache-dtype", "f32"},
                {"kv_cache_dtype f32 is not supported on the GPU"});
}

TEST_CASE("latent and cross-layer attention are benched, and what they lack is refused with one message") {
  for (const auto& [family, kv_heads] : {std::pair{"deepseek_v2", 1}, {"cla", 2}}) {
    INFO(family);
    const std::string model = (std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/families" / family).string();
    const Arguments bench{"bench", "--model", model, "--context", "40", "--repeats", "1", "--warm-up", "0"};
    const Json report = run_for_json(bench);
    REQUIRE(report.at("points").size() == 2);
    if (std::string(family) == "deepseek_v2") {
      Arguments on_gpu = bench;
      on_gpu.insert(on_gpu.end(), {"--device", "host-gpu"});
      CHECK(run_for_json(on_gpu).at("points").size() == 2);
    }
    for (const Json& point : report.at("points")) CHECK(point.at("num_key_value_heads") == kv_heads);
    const auto refused_with = [&](const char* option, const char* value, const std::string& message) {
      Arguments arguments = bench;
      arguments.insert(arguments.end(), {option, value});
      check_refused(arguments, {message});
    };
    if (std::string(family) == "cla") refused_with("--device", "host-gpu", "head_dim 8 is not supported on the GPU");
    refused_with("--kv-cache-dtype", "kivi4", "it needs K and V in every layer");
  }
}

}  // namespace
}  // namespace dculab::cli::test
