// `dculab evaluate` and `dculab bench --workload` on the shipped model.
#include <cmath>

#include "tests/cli/conversations.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kEval = DCULAB_SOURCE_DIR "/scenarios/models/dculab-tiny/eval/";

// The first `lines` of a file of the shipped model's eval folder.
std::string first_lines(const Folder& folder, const std::string& name, int lines) {
  const std::string text = read(kEval + name);
  std::size_t end = 0;
  for (int line = 0; line < lines; ++line) end = text.find('\n', end) + 1;
  return folder.write(name, text.substr(0, end));
}

Arguments evaluate(const Arguments& more) {
  Arguments arguments{"evaluate", "--model", "dculab-tiny", "--decode-steps", "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("evaluate says what activations rounded to BF16 cost a model with BF16 weights") {
  const Folder folder;
  const std::string text = first_lines(folder, "held-out.txt", 20);
  const Json rows = run_for_json({"evaluate", "--model", "dculab-tiny", "--reference", "dculab-tiny", "--text", text,
                                  "--decode-steps", "2", "--activations", "exact,int8,bf16"})
                        .at("rows");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].at("activations") == "exact");
  CHECK(rows[1].at("activations") == "bf16");
  const double kl = rows[1].at("text").at("mean_kl").get<double>();
  CHECK(kl > 1e-7);  // something was rounded
  CHECK(kl < 1e-3);
}

TEST_CASE("evaluate judges text and questions, a row for each way to run the model", "[main]") {
  const Folder folder;
  const std::string text = first_lines(folder, "held-out.txt", 20);
  const std::string questions = first_lines(folder, "choice.jsonl", 6);
  const Json result =
      run_for_json({"evaluate", "--model", "dculab-tiny,dculab-tiny-draft", "--reference", "dculab-tiny", "--text",
                    text, "--choices", questions, "--kv-cache-dtype", "f32,bf16", "--decode-steps", "2"});
  CHECK(result.at("schema") == "dculab/evaluate/1");
  CHECK(result.at("window_tokens") == 1024);
  CHECK(result.at("streamed") == false);
  REQUIRE(result.at("rows").size() == 4);
  const Json& first = result["rows"][0];
  CHECK(first.at("model") == "dculab-tiny");
  CHECK(first.at("kv_cache_dtype") == "f32");
  CHECK(first.at("activations") == "exact");
  CHECK(first.at("kv_retention").at("policy") == "all");
  CHECK(first.at("text").at("perplexity").get<double>() > 1);
  CHECK(first["text"].at("top1_agreement") == 1.0);
  CHECK(first["text"].at("mean_kl").get<double>() < 1e-6);
  CHECK(first.at("choices").at(0).at("items") == 6);
  CHECK(first["choices"][0].at("accuracy").get<double>() > 0.5);
  CHECK(first.at("weight_bytes") == 3934464 * 2);
  CHECK(first.at("kv_bytes_per_token") == 4 * 2 * 8 * 32 * 4);
  CHECK(first.at("decode").at("tokens_per_second").get<double>() > 0);
  CHECK(result["rows"][1].at("kv_bytes_per_token") == 4 * 2 * 8 * 32 * 2);
  CHECK(result["rows"][2].at("model") == "dculab-tiny-draft");
  CHECK(result["rows"][2].at("text").at("mean_kl").get<double>() > 1e-3);
}

TEST_CASE("evaluate and bench say which experts of a mixture the engine saw, and nothing of them otherwise") {
  const std::string golden = DCULAB_SOURCE_DIR "/tests/golden/";
  const Folder folder;
  for (const char* file : {"config.json", "model.safetensors"})
    folder.write(file, read(golden + "families/qwen3_moe/" + file));
  folder.write("tokenizer.json", read(golden + "llama/text/tokenizer.json"));
  // Letters alone, which are tokens of the small vocabulary.
  const std::string text = folder.write("text.txt", "TOBEORNOTTOBETHATISTHEQUESTION");
  const Arguments arguments{"evaluate", "--model", folder.path(""), "--text", text, "--decode-steps", "0"};
  const Json row = run_for_json(arguments).at("rows").at(0);
  const Json& experts = row.at("experts");
  CHECK(experts.at("choices").size() == 2);
  double choices = 0;
  for (const Json& count : experts["choices"].at(1)) choices += count.get<double>();
  CHECK(std::fmod(choices, 3) == 0);  // of a token
  CHECK(choices >= 3 * row.at("text").at("tokens").get<double>());
  CHECK(experts.at("distinct_per_step").get<double>() >= 3);
  CHECK(experts.at("hottest_share").get<double>() >= 1.0 / 8);
  CHECK_THAT(run_dculab(arguments).out, ContainsSubstring("experts/step"));

  const Arguments bench{"bench", "--phase",   "decode", "--batch", "1,4",          "--context",
                        "32",    "--repeats", "1",      "--model", folder.path("")};
  const Json points = run_for_json(bench).at("points");
  CHECK(points.at(0).at("experts").at("distinct_per_step") == 3);
  CHECK(points.at(1).at("experts").at("distinct_per_step").get<double>() > 3);
  CHECK_FALSE(run_for_json({"bench", "--model", "dculab-tiny", "--phase", "decode", "--repeats", "1"})
                  .at("points")
                  .at(0)
                  .contains("experts"));
}

TEST_CASE("token by token and in chunks a text is as likely") {
  const Folder folder;
  const std::string text = first_lines(folder, "held-out.txt", 20);
  const Json chunked = run_for_json(evaluate({"--text", text, "--window", "96"}));
  const Json streamed = run_for_json(evaluate({"--text", text, "--window", "96", "--stream", "--threads", "1"}));
  CHECK(streamed.at("streamed") == true);
  CHECK_THAT(streamed["rows"][0]["text"]["loss"].get<double>(),
             WithinRel(chunked["rows"][0]["text"]["loss"].get<double>(), 1e-12));
  const std::string table = run_dculab(evaluate({"--text", text, "--window", "96"})).out;
  CHECK_THAT(table, ContainsSubstring("held-out.txt in windows of 96 tokens, in chunks"));
  CHECK_THAT(table, ContainsSubstring("perplexity"));
}

TEST_CASE("policies are judged at equal bytes: what critical blocks load is what the others keep") {
  const Folder folder;
  const std::string text = first_lines(folder, "held-out.txt", 20), questions = first_lines(folder, "recall.jsonl", 1);
  const Json result = run_for_json(evaluate({"--text", text, "--choices", questions, "--window", "128", "--stream",
                                             "--kv-budget", "0.25", "--block-size", "8", "--decode-context", "128",
                                             "--kv-retention", "all,critical-blocks,window,sinks,heavy-hitters"}));
  const Json& rows = result.at("rows");
  const double of_token = rows[0].at("kv_bytes_per_token");
  CHECK(rows[0].at("kv_bytes_loaded") == 128 * of_token);
  // 4 of 16 blocks, and the bounds of all, each of which has the bytes of a token.
  CHECK(rows[1].at("kv_bytes_loaded") == (4 * 8 + 16) * of_token);
  CHECK(rows[1].at("kv_bytes_per_sequence") == (128 + 16) * of_token);
  CHECK(rows[1].at("kv_retention").at("budget") == 0.25);
  CHECK(rows[2].at("kv_retention").at("window_tokens") == 48);
  CHECK(rows[3].at("kv_retention").at("window_tokens") == 44);
  CHECK(rows[4].at("kv_retention").at("heavy_hitter_tokens") == 24);
  CHECK(rows[4].at("kv_retention").at("window_tokens") == 24);
  const double all = rows[0].at("text").at("loss"), critical = rows[1].at("text").at("loss");
  CHECK(critical != all);
  const Json whole = run_for_json(evaluate({"--text", text, "--choices", questions, "--window", "128", "--stream",
                                            "--kv-budget", "1", "--kv-retention", "all,critical-blocks"}));
  CHECK(whole["rows"][0]["text"] == whole["rows"][1]["text"]);
  CHECK(whole["rows"][0]["choices"] == whole["rows"][1]["choices"]);
}

TEST_CASE("a text beyond the trained context is judged when asked for, and the report says so") {
  const Folder folder;
  const std::string text = first_lines(folder, "held-out.txt", 150);
  const Arguments beyond = evaluate({"--text", text, "--stream", "--window", "1300", "--max-position-embeddings",
                                     "1300", "--kv-retention", "window,sinks", "--window-tokens", "64"});
  const Json result = run_for_json(beyond);
  CHECK(result.at("context_tokens") == 1024);
  for (const Json& row : result.at("rows")) {
    const Json& last = row.at("text").at("by_position").back();
    CHECK(last.at("begin") == 1024);
    CHECK(last.at("tokens").get<int>() >= 1300 - 1024);
  }
  const std::string table = run_dculab(beyond).out;
  CHECK_THAT(table, ContainsSubstring("positions from 1024 on lie beyond what the models were made for"));
  CHECK_THAT(table, ContainsSubstring("1024 to 2047"));
  check_refused(evaluate({"--text", text, "--max-position-embeddings", "0"}), {"--max-position-embeddings"});
}

TEST_CASE("evaluate refuses what it cannot judge") {
  const Folder folder;
  const std::string text = first_lines(folder, "held-out.txt", 2);
  check_refused(evaluate({}), {"--text", "--choices"});
  check_refused(evaluate({"--text", folder.path("none.txt")}), {"none.txt"});
  check_refused(evaluate({"--text", folder.write("a.txt", "a")}), {"a.txt", "fewer than two tokens"});
  check_refused(evaluate({"--text", text, "--reference", "no-model"}), {"no-model"});
  check_refused(evaluate({"--choices", folder.write("q.jsonl", "{}"), "--reference", "dculab-tiny"}), {"--reference"});
  check_refused(evaluate({"--choices", folder.write("bad.jsonl", "{\n")}), {"bad.jsonl:1"});
  check_refused(evaluate({"--text", text, "--window", "1"}), {"--window"});
  const Folder longer;
  check_refused(evaluate({"--text", first_lines(longer, "held-out.txt", 150), "--window", "4000"}),
                {"max_position_embeddings", "1024"});
  check_refused(evaluate({"--text", text, "--kv-cache-dtype", "f17"}), {"--kv-cache-dtype", "'f17'"});
  check_refused(evaluate({"--text", text, "--activations", "int4"}), {"--activations", "'int4'"});
  check_refused(evaluate({"--text", text, "--kv-retention", "some"}), {"--kv-retention", "'some'"});
  check_refused(evaluate({"--text", text, "--kv-retention", "window", "--window-tokens", "16"}), {"--stream"});
  check_refused(evaluate({"--text", text, "--stream", "--kv-retention", "sinks"}), {"--window-tokens"});
  check_refused(evaluate({"--text", text, "--kv-retention", "critical-blocks", "--kv-budget", "0.5"}), {"--stream"});
  check_refused(evaluate({"--text", text, "--stream", "--kv-retention", "critical-blocks"}), {"--kv-budget"});
  check_refused({"evaluate", "--model", "dculab-tiny", "--text", text, "--decode-context", "1024"},
                {"max_position_embeddings"});
}

TEST_CASE("figures and options that do nothing are refused") {
  const Folder folder;
  const std::string text = first_lines(folder, "held-out.txt", 2);
  const auto refused = [&](const Arguments& more, const std::string& message) {
    Arguments arguments{"--text", text, "--stream"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refused(evaluate(arguments), {message});
  };
  refused({"--kv-budget", "0.5"}, "--kv-budget: does nothing with --kv-retention all");
  refused({"--kv-retention", "all,window", "--window-tokens", "16", "--recent-blocks", "2"},
          "--recent-blocks: does nothing with --kv-retention all,window");
  refused({"--kv-retention", "window", "--window-tokens", "16", "--sink-tokens", "4"},
          "--sink-tokens: does nothing with --kv-retention window");
  refused({"--decode-batch", "2"}, "--decode-batch: does nothing with --decode-steps 0");
  check_refused(evaluate({"--text", text, "--max-num-seqs", "2"}),
                {"--max-num-seqs: does nothing without --text and --stream"});
  check_refused(evaluate({"--choices", kEval + "choice.jsonl", "--window", "64"}),
                {"--window: does nothing without --text"});
  const Arguments bench{"bench", "--model", "dculab-tiny", "--kv-budget", "0.5"};
  check_refused(bench, {"--kv-budget: does nothing with --kv-retention all"});
}

TEST_CASE("bench has a point for each policy, and says its figures") {
  const Json points = run_for_json({"bench", "--model", "dculab-tiny", "--phase", "decode", "--context", "64",
                                    "--repeats", "1", "--warm-up", "0", "--kv-retention", "window,critical-blocks",
                                    "--window-tokens", "32", "--kv-budget", "0.5"})
                          .at("points");
  REQUIRE(points.size() == 2);
  CHECK(points[0].at("kv_retention").at("policy") == "window");
  CHECK(points[0].at("kv_retention").at("window_tokens") == 32);
  CHECK(points[0].at("kv_retention").at("budget").is_null());
  CHECK(points[1].at("kv_retention").at("policy") == "critical-blocks");
  CHECK(points[1].at("kv_retention").at("budget") == 0.5);
  CHECK(points[1].at("kv_retention").at("recent_blocks") == 1);
}

TEST_CASE("a workload is served whole, and its figures belong together", "[main]") {
  const Json result = run_for_json({"bench", "--model", "dculab-tiny", "--workload", kConversations, "--num-prompts",
                                    "4", "--block-size", "8,16", "--seed", "3"});
  CHECK(result.at("schema") == "dculab/bench-workload/1");
  REQUIRE(result.at("rows").size() == 2);
  const Json& row = result["rows"][0];
  CHECK(row.at("requests") == 4);
  CHECK(row.at("prompt_tokens") == result["rows"][1].at("prompt_tokens"));
  const double seconds = row.at("duration_seconds"), generated = row.at("generated_tokens");
  const double all = generated + row.at("prompt_tokens").get<double>();
  CHECK_THAT(row.at("all_requests_per_second").get<double>(), WithinRel(4 / seconds, 1e-9));
  CHECK_THAT(row.at("all_tokens_per_second").get<double>(), WithinRel(all / seconds, 1e-9));
  CHECK_THAT(row.at("generated_tokens_per_second").get<double>(), WithinRel(generated / seconds, 1e-9));
  CHECK_THAT(row.at("latency_seconds_sum").get<double>(),
             WithinRel(4 * row.at("latency_seconds_mean").get<double>(), 1e-9));
  CHECK(row.at("latency_seconds_mean").get<double>() <= seconds * 1.000001);
  CHECK(row.at("ttft_seconds_median").get<double>() > 0);
}

TEST_CASE("a workload that cannot be served is refused") {
  const Folder folder;
  const Arguments bench{"bench", "--model", "dculab-tiny", "--workload"};
  const auto refuse = [&](const std::string& file, const Arguments& more, const std::vector<std::string>& parts) {
    Arguments arguments = bench;
    arguments.push_back(file);
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refused(arguments, parts);
  };
  refuse(folder.path("none.json"), {}, {"none.json"});
  refuse(folder.write("object.json", "{}"), {}, {"object.json", "list of conversations"});
  refuse(folder.write("short.json",
                      R"([{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]}])"),
         {}, {"short.json", "at least 4 tokens"});
  refuse(kConversations, {"--batch", "4"}, {"--workload", "--batch"});
  refuse(kConversations, {"--activations", "int8"}, {"--activations int8", "needs quantized weights"});
  refuse(kConversations, {"--num-prompts", "0"}, {"--num-prompts"});
  check_refused({"bench", "--model", "dculab-tiny", "--num-prompts", "3"}, {"--workload"});
}

TEST_CASE("what evaluate wrote of a model and its merged copies decides the KV heads of a recommendation") {
  const Folder folder;
  const std::string models = std::string(DCULAB_SOURCE_DIR) + "/scenarios/models/", own = folder.path("own.json");
  const std::string text = folder.write("text.txt", read(models + "dculab-tiny/eval/held-out.txt").substr(0, 4'000));
  const Finished done = run_dculab({"evaluate", "--model",
                                    models + "dculab-tiny," + models + "dculab-tiny-gqa4," + models + "dculab-tiny-mqa",
                                    "--text", text, "--decode-steps", "0", "--format", "json", "--output", own});
  REQUIRE(done.exit_code == 0);
  const auto kept = [&](const std::string& tolerance) {
    const Json found = run_for_json({"recommend", "--model", models + "dculab-tiny", "--machine", "z100",
                                     "--prompt-tokens", "200", "--output-tokens", "100", "--set",
                                     "accuracy={file: " + own + ", model: mine, tolerance: " + tolerance + "}"});
    CHECK(found.at("recommendations")[0].at("kv_heads_by") == "accuracy");
    std::vector<std::string> heads;
    for (const Json& each : found.at("recommendations")[0].at("decisions")[0].at("candidates"))
      heads.push_back(each.at("value"));
    return heads;
  };
  CHECK(kept("0 %").front() == "8");
  CHECK(kept("900 %") == std::vector<std::string>{"8", "4", "2", "1"});  // 2 loses no more than 1
}

}  // namespace
}  // namespace dculab::cli::test
