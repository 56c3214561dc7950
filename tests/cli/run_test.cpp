// `dculab run` on the shipped model: what it generates does not depend on how it is run.
#include <algorithm>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

constexpr const char* kPrompt = "Once upon a time";

Arguments generate(const Arguments& more) {
  Arguments arguments{"run", "--model", "dculab-tiny"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (std::find(more.begin(), more.end(), "--max-tokens") == more.end())
    arguments.insert(arguments.end(), {"--max-tokens", "24"});
  return arguments;
}

std::vector<int> tokens_of(Arguments more) {
  more.insert(more.end(), {"--prompt", kPrompt});
  return run_for_json(generate(more)).at("completions").at(0).at("token_ids");
}

TEST_CASE("greedy text is the same whatever the threads, the blocks and the run") {
  const std::vector<int> tokens = tokens_of({"--temperature", "0", "--threads", "2"});
  CHECK(tokens.size() == 24);
  CHECK(tokens_of({"--temperature", "0", "--threads", "2"}) == tokens);
  CHECK(tokens_of({"--temperature", "0", "--threads", "1"}) == tokens);
  for (const char* block_size : {"1", "8", "256"}) {
    INFO(block_size);
    CHECK(tokens_of({"--temperature", "0", "--block-size", block_size}) == tokens);
  }
}

TEST_CASE("a seed repeats its text, another one does not") {
  const std::vector<int> tokens = tokens_of({"--temperature", "1", "--seed", "7"});
  CHECK(tokens_of({"--temperature", "1", "--seed", "7", "--threads", "1"}) == tokens);
  CHECK(tokens_of({"--temperature", "1", "--seed", "8"}) != tokens);
}

TEST_CASE("prompts of a file get what each gets alone", "[main]") {
  const Folder folder;
  const std::string file = folder.write("prompts.txt", "Once upon a time\nThe dog ran to\n\nTom and Lena\n");
  const Json together = run_for_json(generate({"--prompts", file, "--temperature", "0"}));
  REQUIRE(together.at("completions").size() == 3);  // the empty line is none
  for (const Json& completion : together.at("completions")) {
    const std::string prompt = completion.at("prompt");
    INFO(prompt);
    const Json alone = run_for_json(generate({"--prompt", prompt, "--temperature", "0"}));
    CHECK(alone.at("completions").at(0).at("token_ids") == completion.at("token_ids"));
  }
  const std::string text = run_dculab(generate({"--prompts", file, "--temperature", "0"})).out;
  CHECK(text.starts_with("[1] Once upon a time" + together["completions"][0]["text"].get<std::string>() + "\n"));
  CHECK_THAT(text, ContainsSubstring("\n[3] Tom and Lena" + together["completions"][2]["text"].get<std::string>()));
}

TEST_CASE("a prompt that cannot be served costs itself, in every format", "[main]") {
  const Folder folder;
  std::string words;
  for (int word = 0; word < 3000; ++word) words += "word ";
  const std::string file = folder.write("prompts.txt", "Once upon\ncaf\xe9\n" + words + "\nThe dog\n");
  const std::string problem =
      file + ": 2 of 4 prompts cannot be served; prompt 2: the prompt is not UTF-8 from byte 4 on";
  const Arguments arguments = generate({"--prompts", file, "--temperature", "0"});
  const auto run_as = [&](const std::string& format) {
    Arguments more = arguments;
    more.insert(more.end(), {"--format", format});
    Finished done = run_dculab(more);
    CHECK(done.exit_code == 2);
    CHECK_THAT(done.err, ContainsSubstring(problem));
    return done.out;
  };
  const Json completions = Json::parse(run_as("json")).at("completions");
  REQUIRE(completions.size() == 4);
  for (const std::size_t served : {0, 3}) {
    const std::string prompt = completions[served].at("prompt");
    const Json alone = run_for_json(generate({"--prompt", prompt, "--temperature", "0"}));
    CHECK(alone.at("completions").at(0) == completions[served]);
  }
  for (const std::size_t refused : {1, 2}) {
    CHECK(completions[refused].at("finish_reason") == "refused");
    CHECK(completions[refused].at("token_ids").empty());
  }
  CHECK(completions[1].at("prompt") == "caf\uFFFD");
  CHECK_THAT(completions[1].at("error").get<std::string>(), ContainsSubstring("not UTF-8"));
  CHECK_THAT(completions[2].at("error").get<std::string>(), ContainsSubstring("max_position_embeddings (1024)"));
  const std::string text = run_as("table");
  CHECK_THAT(text, ContainsSubstring("[1] Once upon" + completions[0].at("text").get<std::string>()));
  CHECK_THAT(text, ContainsSubstring("[2] refused: the prompt is not UTF-8"));
  CHECK_THAT(text, ContainsSubstring("[4] The dog" + completions[3].at("text").get<std::string>()));
  CHECK_THAT(run_as("csv"), ContainsSubstring(",,,refused,the prompt is not UTF-8"));

  const std::string bad = folder.write("bad.txt", "\xff\n");
  const Finished all = run_dculab(generate({"--prompts", bad, "--format", "json"}));
  CHECK(all.exit_code == 2);
  CHECK(Json::parse(all.out).at("completions").size() == 1);
  CHECK(std::count(all.err.begin(), all.err.end(), '\n') == 1);
}

TEST_CASE("names that are not UTF-8 cost a character of JSON, not the result") {
  const Folder folder;
  const std::string machine = folder.write("m\xe9.yaml", read(DCULAB_SOURCE_DIR "/hwmodels/z100.yaml"));
  CHECK(run_for_json({"show", machine}).contains("schema"));
  CHECK(run_for_json({"quantize", "--model", "dculab-tiny", "--method", "rtn", "--group-size", "16", "--output",
                      folder.path("q\xe9")})
            .at("output") == folder.path("q\uFFFD"));
}

TEST_CASE("a policy that keeps everything there is gives the same text, others are named when they are wrong") {
  const std::vector<int> tokens = tokens_of({"--temperature", "0"});
  const Arguments sinks{"--temperature", "0", "--kv-retention", "sinks", "--window-tokens", "64"};
  CHECK(tokens_of(sinks) == tokens);
  CHECK(tokens_of({"--temperature", "0", "--kv-retention", "heavy-hitters", "--window-tokens", "32",
                   "--heavy-hitter-tokens", "32"}) == tokens);
  CHECK(tokens_of({"--temperature", "0", "--enable-prefix-caching"}) == tokens);
  CHECK(tokens_of({"--temperature", "0", "--kv-retention", "critical-blocks", "--kv-budget", "1"}) == tokens);
  const auto refusal = [](const Arguments& more) {
    Arguments arguments = generate(more);
    arguments.insert(arguments.end(), {"--prompt", kPrompt});
    const Finished finished = run_dculab(arguments);
    CHECK(finished.exit_code == 2);
    return finished.err;
  };
  CHECK_THAT(refusal({"--swap-space", "1 MiB", "--kv-retention", "window", "--window-tokens", "5"}),
             ContainsSubstring("cannot be combined with preemption_mode swap"));
  CHECK_THAT(refusal({"--swap-space", "some"}), ContainsSubstring("--swap-space"));
  CHECK_THAT(refusal({"--kv-retention", "h2o"}),
             ContainsSubstring("use all, window, sinks, heavy-hitters or critical-blocks"));
  CHECK_THAT(refusal({"--kv-retention", "window"}), ContainsSubstring("needs window_tokens"));
  CHECK_THAT(refusal({"--window-tokens", "5"}),
             ContainsSubstring("--window-tokens: does nothing with --kv-retention all"));
  CHECK_THAT(refusal({"--kv-budget", "0.5"}), ContainsSubstring("--kv-budget: does nothing with --kv-retention all"));
  CHECK_THAT(refusal({"--kv-retention", "critical-blocks"}), ContainsSubstring("needs a budget above 0 and at most 1"));
  CHECK_THAT(refusal({"--kv-retention", "critical-blocks", "--kv-budget", "0.5", "--prompt-lookup"}),
             ContainsSubstring("each of several new tokens would choose other blocks"));
  CHECK_THAT(refusal({"--kv-retention", "window", "--window-tokens", "5", "--enable-prefix-caching"}),
             ContainsSubstring("cannot be combined with enable_prefix_caching"));
  CHECK_THAT(refusal({"--n", "2", "--temperature", "1", "--kv-retention", "window", "--window-tokens", "5"}),
             ContainsSubstring("--n: samples of a prompt share its KV blocks"));
  CHECK_THAT(refusal({"--kv-residual-tokens", "128"}),
             ContainsSubstring("--kv-residual-tokens: does nothing with --kv-cache-dtype f16"));
  CHECK_THAT(refusal({"--kv-retention", "critical-blocks", "--kv-budget", "0"}),
             ContainsSubstring("--kv-budget: must be above 0 and at most 1, not 0"));
  CHECK_THAT(refusal({"--kv-cache-skip", "none,padding"}), ContainsSubstring("'none' stands alone"));
  CHECK_THAT(refusal({"--n", "2", "--temperature", "0"}), ContainsSubstring("would all be the same"));
}

TEST_CASE("sequences that wait in host memory are counted, and no text changes") {
  const Folder folder;
  const std::string prompts = folder.write("prompts.txt", "Once upon a time\nTom\n");
  const auto served = [&](const Arguments& more) {
    Arguments arguments{"--prompts", prompts, "--temperature", "0", "--ignore-eos", "--block-size", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_for_json(generate(arguments));
  };
  const Json roomy = served({});
  CHECK_FALSE(roomy.at("statistics").contains("swaps"));
  const Json swapped = served({"--kv-cache-memory", "144 KiB", "--swap-space", "1 MiB"});
  const Json& statistics = swapped.at("statistics");
  CHECK(statistics.at("swaps").get<int>() > 0);
  CHECK(statistics.at("swaps") == statistics.at("preemptions"));
  for (const std::size_t index : {0, 1})
    CHECK(swapped["completions"][index]["token_ids"] == roomy["completions"][index]["token_ids"]);
}

TEST_CASE("padding and prompts that come together are skipped, and no text changes") {
  const Folder folder;
  const std::string pad = "<|endoftext|>", dog = "Once upon a time there was a dog";
  const auto served = [&](const std::string& text, const Arguments& more) {
    Arguments arguments{"--prompts", folder.write("prompts.txt", text), "--temperature", "0", "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_for_json(generate(arguments));
  };
  const auto tokens = [](const Json& result, std::size_t index) { return result["completions"][index]["token_ids"]; };
  const Json bare = served(dog + "\nTom\n" + dog + "\n", {});
  const Json skipped = served(pad + pad + dog + "\n" + pad + pad + pad + "Tom\n" + pad + pad + dog + "\n",
                              {"--kv-cache-skip", "padding,duplicate_prompts", "--pad-token-id", "0"});
  for (std::size_t index = 0; index < 3; ++index) CHECK(tokens(skipped, index) == tokens(bare, index));
  CHECK(skipped["statistics"].at("skipped_padding_tokens") == 7);
  CHECK(skipped["statistics"].at("skipped_duplicate_tokens").get<int>() > 0);
  CHECK(skipped["statistics"]["prompt_tokens"] == bare["statistics"]["prompt_tokens"]);
  CHECK_FALSE(bare["statistics"].contains("skipped_padding_tokens"));
  check_refused(generate({"--prompt", dog, "--kv-cache-skip", "padding"}),
                {"dculab-tiny", "names no pad token", "--pad-token-id"});
  check_refused(generate({"--prompt", dog, "--kv-cache-skip", "pads"}),
                {"--kv-cache-skip", "'pads' cannot be skipped; use none, padding, duplicate_prompts or all"});
  check_refused(generate({"--prompt", dog, "--pad-token-id", "0"}),
                {"--pad-token-id", "does nothing without --kv-cache-skip padding"});
  check_refused(generate({"--prompt", dog, "--kv-cache-skip", "duplicate_prompts", "--kv-cache-dtype", "kivi4"}),
                {"kv_cache_skip duplicate_prompts cannot share blocks of kv_cache_dtype kivi4"});
}

TEST_CASE("samples of one prompt, and a prompt that comes again") {
  const Json samples =
      run_for_json(generate({"--prompt", kPrompt, "--n", "3", "--temperature", "1", "--seed", "7", "--threads", "2"}));
  REQUIRE(samples.at("completions").size() == 3);
  CHECK(samples["completions"][1].at("token_ids") == Json(tokens_of({"--temperature", "1", "--seed", "8"})));
  const Folder folder;
  const std::string file =
      folder.write("prompts.txt", "Once upon a time there was a dog\nOnce upon a time there was a dog\n");
  const Json cached = run_for_json(generate({"--prompts", file, "--temperature", "0", "--enable-prefix-caching",
                                             "--max-num-seqs", "1", "--block-size", "2"}));
  CHECK(cached.at("statistics").at("cached_prompt_tokens").get<int>() > 0);
  CHECK(cached["completions"][0].at("token_ids") == cached["completions"][1].at("token_ids"));
}

TEST_CASE("JSON has the completion and what it took") {
  const Json result = run_for_json(generate({"--prompt", kPrompt, "--temperature", "0", "--max-tokens", "5"}));
  CHECK(result.at("schema") == "dculab/run/1");
  const Json& completion = result.at("completions").at(0);
  CHECK(completion.at("prompt") == kPrompt);
  CHECK(completion.at("token_ids").size() == 5);
  CHECK(completion.at("finish_reason") == "length");
  CHECK_FALSE(completion.at("text").get<std::string>().empty());
  CHECK(result.at("statistics").at("generated_tokens") == 5);
  CHECK(result.at("statistics").at("duration_seconds").get<double>() > 0);
}

TEST_CASE("text streams to the terminal or goes to a file, the same text") {
  const Folder folder;
  const std::string file = folder.path("story.txt");
  const Finished streamed = run_dculab(generate({"--prompt", kPrompt, "--temperature", "0"}));
  CHECK(streamed.exit_code == 0);
  CHECK(streamed.out.starts_with(kPrompt));
  CHECK(streamed.out.ends_with("\n"));
  CHECK_THAT(streamed.err, ContainsSubstring("24 generated"));

  const Finished written = run_dculab(generate({"--prompt", kPrompt, "--temperature", "0", "--output", file}));
  CHECK(written.exit_code == 0);
  CHECK(written.out.empty());
  CHECK(read(file) == streamed.out);
  CHECK(folder.entries() == std::vector<std::string>{"story.txt"});
}

}  // namespace
}  // namespace dculab::cli::test
