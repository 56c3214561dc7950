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
