#include "config/request_trace_file.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::config;

TEST_CASE("recorded requests are read in order of arrival") {
  const auto requests = read_request_trace("t.csv",
                                           "arrived_at,num_prefill_tokens,num_decode_tokens\n"
                                           "1.5,20,4\n0.25,10,3\n");
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].arrival == Seconds(0.25));
  CHECK(requests[0].prompt_tokens == 10);
  CHECK(requests[1].output_tokens == 4);
  CHECK(requests[1].prompt_id == -1);
  const auto same = read_request_trace("t.csv",
                                       "arrived_at,num_prefill_tokens,num_decode_tokens,prompt_id\n"
                                       "0,20,4,7\n1,10,3,\n");
  CHECK(same[0].prompt_id == 7);
  CHECK(same[1].prompt_id == -1);
}

TEST_CASE("what is wrong with recorded requests is said with the line") {
  CHECK_THROWS_WITH(
      read_request_trace("t.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n-1,0,4\n"),
      ContainsSubstring("t.csv:2") && ContainsSubstring("arrived_at") && ContainsSubstring("num_prefill_tokens"));
  CHECK_THROWS_WITH(read_request_trace("t.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n"),
                    ContainsSubstring("has no requests"));
}

TEST_CASE("of a wrong file of any length 20 lines are told") {
  std::string text = "arrived_at,num_prefill_tokens,num_decode_tokens\n";
  for (int row = 0; row < 100'000; ++row) text += "x,y,z\n";
  try {
    static_cast<void>(read_request_trace("t.csv", text));
    FAIL("100,000 wrong rows are accepted");
  } catch (const InputError& error) {
    const std::string reported = error.what();
    CHECK(std::count(reported.begin(), reported.end(), '\n') == 20);
    CHECK_THAT(reported, ContainsSubstring("and 100,000 or more problems"));
  }
}

TEST_CASE("a table that is not UTF-8 is refused with the line") {
  CHECK_THROWS_WITH(read_request_trace("t.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n1,2,\xe9\n"),
                    "t.csv:2: is not UTF-8 (byte 233); save it as UTF-8");
}

TEST_CASE("Azure's, BurstGPT's, Mooncake's and Bailian's requests are read by their names") {
  const auto foreign = [](const std::string& name) {
    return read_request_trace_file(DCULAB_SOURCE_DIR "/tests/data/foreign/traces/" + name);
  };
  const auto azure = foreign("CUT_AzureLLMInferenceTrace2023_code.csv");
  CHECK(azure.size() == 400);
  CHECK(azure.front().arrival == Seconds(0));
  CHECK(azure.back().arrival > Seconds(1));
  CHECK(azure.back().arrival < Seconds(3600));
  CHECK(foreign("CUT_AzureLLMInferenceTrace2024_conv_10rows.csv").size() == 10);

  for (const char* name : {"SYNTH_burstgpt_v1.csv", "SYNTH_burstgpt_v2_4real_296synthetic.csv"}) {
    const auto burst = foreign(name);
    CHECK(burst.size() > 100);
    CHECK(burst.front().arrival == Seconds(0));
    CHECK(std::ranges::all_of(burst, [](const auto& each) { return each.output_tokens > 0; }));
  }

  const auto mooncake = foreign("CUT_mooncake_conversation_trace_300.jsonl");
  CHECK(mooncake.size() == 300);
  CHECK(mooncake.front().block_tokens == 512);
  for (const RecordedRequest& each : mooncake)
    CHECK(each.block_ids.size() == static_cast<std::size_t>((each.prompt_tokens + 511) / 512));
  const auto bailian = foreign("SYNTH_bailian_blksz16_1real_239synthetic.jsonl");
  CHECK(bailian.size() == 240);
  CHECK(bailian.front().block_tokens == 16);
}

TEST_CASE("times of day keep their fraction, through midnight") {
  const auto requests = read_request_trace("t.csv",
                                           "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                                           "2023-12-31 23:59:59.7500000,10,2\r\n2024-01-01 00:00:00+00:00,11,3\r\n");
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].arrival.value() == Approx(0.25));
  CHECK(read_request_trace("t.csv",
                           "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00,10,0\n"
                           "2024-01-01 00:00:01,11,3\n")
            .size() == 1);  // the other was not answered
  CHECK_THROWS_WITH(read_request_trace("t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n"),
                    ContainsSubstring("t.csv:2") && ContainsSubstring("'yesterday' is no date and time"));
}

TEST_CASE("blocks that do not cover a prompt are refused") {
  CHECK_THROWS_WITH(
      read_request_trace("t.jsonl", R"({"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [4]})"),
      ContainsSubstring("t.jsonl:1") && ContainsSubstring("hash_ids"));
}
