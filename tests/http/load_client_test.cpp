#include "bindings/http/load_client.hpp"

#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

TEST_CASE("events are found wherever the stream is cut", "[http]") {
  const std::string stream =
      ": a comment\n\ndata: {\"a\": 1}\n\ndata:two\r\n\r\nevent: x\n\n\ndata: three\n\ndata: not complete\n";
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    http::EventReader events;
    std::vector<std::string> seen;
    for (std::size_t begin = 0; begin < stream.size(); begin += piece)
      REQUIRE(events.add(std::string_view(stream).substr(begin, piece),
                         [&seen](std::string_view data) { seen.emplace_back(data); }));
    CAPTURE(piece);
    REQUIRE(seen == std::vector<std::string>{"{\"a\": 1}", "two", "three"});
  }
}

TEST_CASE("a server that cannot be reached is named", "[http]") {
  http::ServerLoad load{.url = "http://127.0.0.1:1", .requests = 2, .vocab_size = 100};
  REQUIRE_THROWS_WITH(http::load_server(load), ContainsSubstring("--server http://127.0.0.1:1: cannot be reached"));
  load.served_model = "m";
  REQUIRE_THROWS_WITH(http::load_server(load), ContainsSubstring("--server http://127.0.0.1:1: breaks off a request"));
}

TEST_CASE("an event that never ends is not kept", "[http]") {
  http::EventReader events;
  const std::string piece(1 << 16, 'x');
  int pieces = 0;
  while (pieces < 100 && events.add(piece, [](std::string_view) {})) ++pieces;
  REQUIRE(pieces == 16);
}

TEST_CASE("an address has a host, and a path that ends in /v1", "[http]") {
  const auto both = [](const std::string& url) {
    const http::ServerAddress address = http::server_address(url);
    return address.root + " " + address.path;
  };
  REQUIRE(both("localhost:8000") == "http://localhost:8000 /v1");
  REQUIRE(both("http://localhost:8000/v1/") == "http://localhost:8000 /v1");
  REQUIRE(both("http://[::1]:8000/") == "http://[::1]:8000 /v1");
  REQUIRE(both("https://example.org/gateway") == "https://example.org /gateway/v1");
  REQUIRE(both("https://example.org/gateway/v1") == "https://example.org /gateway/v1");
}

TEST_CASE("a key that cannot be sent is refused without being shown", "[http]") {
  const http::ServerLoad load{.url = "http://127.0.0.1:1", .api_key = "secret\r\nX: y", .vocab_size = 100};
  REQUIRE_THROWS_WITH(http::load_server(load), !ContainsSubstring("secret"));
}
