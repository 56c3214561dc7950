// `dculab regroup`: a folder that the engine runs, or nothing.
#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/model_folders.hpp"

namespace dculab::cli::test {
namespace {

std::string long_text() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "Once upon a time there were " + std::to_string(i) + " foxes in the forest.\n";
  return text;
}

Arguments regroup(const Folder& folder, Arguments more) {
  Arguments arguments{"regroup", "--model", kTextModel, "--output", folder.path("model")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("neighbours need no text, and the new model runs", "[main]") {
  const Folder folder;
  const Json json = run_for_json(regroup(folder, {"--kv-heads", "1", "--method", "mean"}));
  CHECK(json["schema"] == "dculab/regroup/1");
  CHECK(json["num_key_value_heads"] == 1);
  CHECK(json["layers"].size() == 2);
  CHECK(json["layers"][0]["similarity_inside"].is_null());
  CHECK(Json::parse(read(folder.path("model/config.json")))["num_key_value_heads"] == 1);
  const Json run =
      run_for_json({"run", "--model", folder.path("model"), "--prompt", "A", "--max-tokens", "3", "--ignore-eos"});
  CHECK(run["completions"][0]["token_ids"].size() == 3);
}

TEST_CASE("similar heads are grouped, with the similarities beside those of neighbours") {
  const Folder folder;
  const std::string text = folder.write("text.txt", long_text());
  for (const char* similarity : {"cosine", "norm", "distance", "svd"}) {
    std::filesystem::remove_all(folder.path("model"));
    const Json json =
        run_for_json(regroup(folder, {"--kv-heads", "1", "--method", "similarity", "--similarity", similarity,
                                      "--merge", "weighted", "--calibration", text, "--calibration-tokens", "128"}));
    CHECK(json["calibration_tokens"] == 128);
    for (const Json& layer : json["layers"]) {
      CHECK(layer["groups"].size() == 1);
      CHECK(layer["weights"].size() == layer["groups"][0].size());
      CHECK(layer["similarity_inside"] >= layer["neighbours_inside"]);
    }
  }
}

TEST_CASE("heads are merged by SVD, and the new model runs") {
  const Folder folder;
  const std::string text = folder.write("text.txt", long_text());
  const Json json =
      run_for_json(regroup(folder, {"--kv-heads", "1", "--method", "mean", "--merge", "svd", "--calibration", text}));
  CHECK(json["merge"] == "svd");
  CHECK(json["layers"][0]["weights"].empty());
  const Json run =
      run_for_json({"run", "--model", folder.path("model"), "--prompt", "A", "--max-tokens", "3", "--ignore-eos"});
  CHECK(run["completions"][0]["token_ids"].size() == 3);
}

TEST_CASE("bad input is refused and nothing is written") {
  const Folder folder;
  const std::string text = folder.write("text.txt", long_text());
  const std::string short_text = folder.write("short.txt", "Once upon");
  const auto refused = [&](const Arguments& more, const std::vector<std::string>& parts) {
    check_refused(regroup(folder, more), parts);
    CHECK(folder.entries() == std::vector<std::string>{"short.txt", "text.txt"});
  };
  refused({"--kv-heads", "3", "--method", "mean"}, {"--kv-heads", "cannot be pooled into 3", "divisor"});
  refused({"--kv-heads", "0", "--method", "mean"}, {"--kv-heads", "cannot be pooled into 0"});
  refused({"--kv-heads", "1", "--method", "similarity"}, {"--calibration is missing"});
  refused({"--kv-heads", "1", "--method", "mean", "--merge", "weighted"}, {"--calibration is missing"});
  refused({"--kv-heads", "1", "--method", "mean", "--merge", "svd"}, {"--calibration is missing"});
  refused({"--kv-heads", "1", "--method", "key-norm"}, {"--calibration is missing"});
  refused({"--kv-heads", "1", "--method", "qcqa", "--error", "svd"}, {"--calibration is missing"});
  refused({"--kv-heads", "99", "--method", "qcqa"}, {"--kv-heads", "can keep 1 to 2 on average", "not 99"});
  refused({"--kv-heads", "0", "--method", "qcqa"}, {"--kv-heads", "can keep 1 to 2 on average", "not 0"});
  refused({"--kv-heads", "1", "--method", "qcqa", "--merge", "svd"}, {"--calibration is missing"});
  refused(
      {"--kv-heads", "1", "--method", "similarity", "--compare", "query", "--similarity", "svd", "--calibration", text},
      {"--similarity svd is of K and V"});
  refused({"--kv-heads", "1", "--method", "nearest"}, {"--method", "nearest"});
  refused({"--kv-heads", "1", "--method", "similarity", "--calibration", short_text}, {"short.txt", "too few"});
  refused({"--kv-heads", "1", "--method", "similarity", "--calibration", folder.path("no.txt")}, {"no.txt"});
}

TEST_CASE("options that do nothing beside the others are refused") {
  const Folder folder;
  const std::string text = folder.write("text.txt", long_text());
  const auto refused = [&](const Arguments& more, const std::string& message) {
    Arguments arguments{"--kv-heads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refused(regroup(folder, arguments), {message});
  };
  refused({"--method", "mean", "--error", "svd"}, "--error: does nothing with --method mean");
  refused({"--method", "key-norm", "--seed", "2", "--calibration", text},
          "--seed: does nothing with --method key-norm");
  refused({"--method", "mean", "--similarity", "norm"}, "--similarity: does nothing without --calibration");
  refused({"--method", "qcqa", "--compare", "output"}, "--compare: does nothing without --calibration");
  refused({"--method", "mean", "--calibration-tokens", "99"},
          "--calibration-tokens: does nothing without --calibration");
}

TEST_CASE("groups are searched by what the merge loses, unless told otherwise") {
  const Folder folder;
  const std::string text = folder.write("text.txt", long_text());
  const auto error_of = [&](const Arguments& more) {
    std::filesystem::remove_all(folder.path("model"));
    Arguments arguments{"--kv-heads", "1", "--method", "qcqa", "--calibration", text};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_for_json(regroup(folder, arguments)).at("error");
  };
  CHECK(error_of({"--merge", "svd"}) == "svd");
  CHECK(error_of({"--merge", "svd", "--error", "weights"}) == "weights");
  CHECK(error_of({"--merge", "mean"}) == "weights");
}

TEST_CASE("models that keep Q, K and V in one tensor are regrouped, in words of our own where theirs have none") {
  const Folder folder;
  for (const auto& [family, type] : {std::pair{"bloom", "dculab_grouped"},
                                     {"falcon_40b", "dculab_grouped"},
                                     {"falcon_rw", "dculab_grouped"},
                                     {"phi3", "phi3"}}) {
    INFO(family);
    std::filesystem::remove_all(folder.path("model"));
    const Json json =
        run_for_json({"regroup", "--model", std::string(DCULAB_SOURCE_DIR) + "/tests/golden/families/" + family,
                      "--kv-heads", "1", "--method", "mean", "--output", folder.path("model")});
    CHECK(json["num_key_value_heads"] == 1);
    CHECK(Json::parse(read(folder.path("model/config.json")))["model_type"] == type);
  }
}

TEST_CASE("groups of any sizes are searched, the same for a seed, and the new model runs", "[main]") {
  const Folder folder;
  const std::string text = folder.write("text.txt", long_text());
  for (const char* error : {"weights", "activations", "svd"}) {
    const auto searched = [&] {
      std::filesystem::remove_all(folder.path("model"));
      return run_for_json(regroup(folder, {"--kv-heads", "1", "--method", "qcqa", "--error", error, "--seed", "7",
                                           "--merge", "svd", "--calibration", text}));
    };
    const Json json = searched();
    CHECK(json["seed"] == 7);
    CHECK(json["kv_heads_of_all_layers"] == json["layers"].size());
    CHECK(json["front"].size() >= 2);
    for (std::size_t i = 1; i < json["front"].size(); ++i) {
      CHECK(json["front"][i]["kv_heads"] > json["front"][i - 1]["kv_heads"]);
      CHECK(json["front"][i]["error"] < json["front"][i - 1]["error"]);
    }
    CHECK(searched() == json);
    const Json run =
        run_for_json({"run", "--model", folder.path("model"), "--prompt", "A", "--max-tokens", "3", "--ignore-eos"});
    CHECK(run["completions"][0]["token_ids"].size() == 3);
  }
}

TEST_CASE("heads are grouped by queries, by outputs and by the norms of keys, and weights are fitted") {
  const Folder folder;
  const std::string text = folder.write("text.txt", long_text());
  const auto grouped = [&](Arguments more) {
    std::filesystem::remove_all(folder.path("model"));
    more.insert(more.end(), {"--kv-heads", "1", "--calibration", text});
    return run_for_json(regroup(folder, more));
  };
  CHECK(grouped({"--method", "similarity", "--compare", "query"})["compare"] == "query");
  CHECK(grouped({"--method", "similarity", "--compare", "output", "--similarity", "norm"})["compare"] == "output");
  const Json fitted = grouped({"--method", "key-norm", "--merge", "fitted"});
  for (const Json& layer : fitted["layers"]) {
    CHECK(layer["groups"].size() == 1);
    CHECK(layer["key_factors"].size() == layer["groups"][0].size());
    CHECK(layer["value_factors"].size() == layer["groups"][0].size());
  }
}

TEST_CASE("models without KV heads of their own in each layer are refused") {
  const Folder folder;
  for (const auto& [family, why] :
       {std::pair{"deepseek_v2", "all heads share one latent"}, {"cla", "some layers read the K and V of an earlier"}})
    check_refused({"regroup", "--model", std::string(DCULAB_SOURCE_DIR) + "/tests/golden/families/" + family,
                   "--kv-heads", "1", "--method", "mean", "--output", folder.path("model")},
                  {"cannot be merged", why});
  CHECK(folder.entries().empty());
}

TEST_CASE("a model with a weight that is no number is refused, whatever is done with it") {
  const Folder folder;
  std::filesystem::copy(kTextModel, folder.path("broken"), std::filesystem::copy_options::recursive);
  std::string weights = read(folder.path("broken/model.safetensors"));
  weights.replace(weights.size() - 4, 4, "\xff\xff\xff\xff");  // NaN in F32, F16 and BF16
  folder.write("broken/model.safetensors", weights);
  const std::string text = folder.write("text.txt", long_text());
  const auto refused = [&](Arguments arguments, const std::string& part) {
    arguments.insert(arguments.begin() + 1, {"--model", folder.path("broken")});
    check_refused(arguments, {part});
    CHECK(folder.entries() == std::vector<std::string>{"broken", "text.txt"});
  };
  const std::string model = folder.path("model");
  refused({"regroup", "--kv-heads", "1", "--method", "mean", "--output", model}, "NaN or infinite");
  refused({"regroup", "--kv-heads", "1", "--method", "similarity", "--calibration", text, "--output", model},
          "NaN or infinite");
  refused({"quantize", "--method", "rtn", "--group-size", "16", "--output", model}, "NaN or infinite");
  refused({"evaluate", "--text", text}, "NaN or infinite");
}

TEST_CASE("quantized checkpoints and folders in use are refused") {
  const Folder folder;
  std::filesystem::create_directory(folder.path("quantized"));
  Json config = Json::parse(read(kTextModel + "/config.json"));
  config["quantization_config"] = {{"quant_method", "gptq"}, {"bits", 4}};
  folder.write("quantized/config.json", config.dump(1));
  check_refused({"regroup", "--model", folder.path("quantized"), "--kv-heads", "1", "--method", "mean", "--output",
                 folder.path("model")},
                {"config.json", "quantized"});
  std::filesystem::create_directory(folder.path("model"));
  folder.write("model/notes.txt", "mine\n");
  check_refused(regroup(folder, {"--kv-heads", "1", "--method", "mean"}), {"model", "exists already"});
  CHECK(read(folder.path("model/notes.txt")) == "mine\n");
}

}  // namespace
}  // namespace dculab::cli::test
