#include "config/request_trace_file.hpp"

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
}

TEST_CASE("what is wrong with recorded requests is said with the line") {
  CHECK_THROWS_WITH(
      read_request_trace("t.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n-1,0,4\n"),
      ContainsSubstring("t.csv:2") && ContainsSubstring("arrived_at") && ContainsSubstring("num_prefill_tokens"));
  CHECK_THROWS_WITH(read_request_trace("t.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n"),
                    ContainsSubstring("has no requests"));
}
