// A server's end of a connection, with a pair of sockets.
#include "bindings/http/connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "bindings/http/serving_limits.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace std::chrono_literals;
using http::Connection;

namespace {

struct Pair {
  Pair() { REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0); }
  ~Pair() { leave(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void send(const std::string& text) const {
    REQUIRE(::send(ends[1], text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  void leave() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }

  std::array<int, 2> ends{};  // the server's, which the connection owns, and the client's
};

[[nodiscard]] bool goes_on() { return false; }

[[nodiscard]] std::string read_all(Connection& connection) {
  std::string text;
  for (char letter = 0; connection.read(&letter, 1) == 1;) text += letter;
  return text;
}

}  // namespace

TEST_CASE("a request that trickles in ends at the limit, however short its silences are", "[http]") {
  Pair pair;
  Connection connection(pair.ends[0], {.silence = 1h, .request = 1s}, goes_on);
  pair.send("a");
  REQUIRE(connection.begin_request(1s));
  std::atomic<bool> has_ended = false;
  std::thread trickle([&] {
    while (!has_ended) {
      ::send(pair.ends[1], "b", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(10ms);
    }
  });
  const std::string text = read_all(connection);  // without end if nothing but the client ended it
  has_ended = true;
  trickle.join();
  REQUIRE(text.starts_with("ab"));
  REQUIRE(connection.closes());
}

TEST_CASE("a silent client, and one that has gone, end a read", "[http]") {
  Pair pair;
  Connection connection(pair.ends[0], {.silence = 50ms, .request = 10s}, goes_on);
  REQUIRE_FALSE(connection.begin_request(20ms));
  REQUIRE_FALSE(connection.is_gone());
  pair.send("abc");
  REQUIRE(connection.begin_request(20ms));
  REQUIRE(connection.is_readable());
  REQUIRE(read_all(connection) == "abc");
  REQUIRE(connection.is_writable());
  REQUIRE(connection.write("xyz", 3) == 3);
  pair.leave();
  REQUIRE(connection.is_gone());
  REQUIRE_FALSE(connection.is_writable());
  REQUIRE(connection.write("xyz", 3) < 0);
}

TEST_CASE("a client that does not read ends a write", "[http]") {
  Pair pair;
  Connection connection(pair.ends[0], {.silence = 50ms, .request = 10s}, goes_on);
  const std::string much(1 << 16, 'x');
  ssize_t sent = 0;
  for (int time = 0; time < 1000 && sent >= 0; ++time) sent = connection.write(much.data(), much.size());
  REQUIRE(sent < 0);
}

TEST_CASE("a server that stops reads nothing more", "[http]") {
  Pair pair;
  Connection connection(pair.ends[0], {}, [] { return true; });
  REQUIRE_FALSE(connection.begin_request(24h));
}

TEST_CASE("requests are as many as descriptors allow", "[http]") {
  const http::ServingLimits enough = http::serving_limits(256, 1024, 20'000);
  REQUIRE(enough.most_requests == 1280);
  REQUIRE(enough.most_connections == 1344);
  REQUIRE(enough.less_than_asked.empty());
  const http::ServingLimits few = http::serving_limits(256, 1024, 900);
  REQUIRE(few.most_requests == 836);
  REQUIRE(few.most_connections == 900);
  REQUIRE_THAT(few.less_than_asked, ContainsSubstring("580 may wait, not 1024"));
  REQUIRE_THROWS_WITH(http::serving_limits(256, 0, 319), ContainsSubstring("ulimit -n"));
}
