#include "bindings/http/connection.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

namespace dculab::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kSlice{100};        // how often is_stopping is asked
constexpr milliseconds kLeaveTaking{500};  // for the client to read the last answer

thread_local Connection* of_thread = nullptr;

// What is there of `events`; 0: nothing in time.
[[nodiscard]] short poll_once(socket_t socket, short events, milliseconds most) {
  pollfd wanted{.fd = socket, .events = events, .revents = 0};
  return ::poll(&wanted, 1, static_cast<int>(most.count())) > 0 ? wanted.revents : short{0};
}

[[nodiscard]] milliseconds until(steady_clock::time_point latest, milliseconds most) {
  const auto left = std::chrono::ceil<milliseconds>(latest - steady_clock::now());
  return std::clamp(left, milliseconds(0), most);
}

using AskName = int (*)(int socket, sockaddr* name, socklen_t* size);

void name_of(AskName ask, socket_t socket, std::string& ip, int& port) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  if (ask(socket, name, &size) != 0 || getnameinfo(name, size, host.data(), host.size(), service.data(), service.size(),
                                                   NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  ip = host.data();
  port = std::atoi(service.data());
}

}  // namespace

Connection::Connection(socket_t socket, ConnectionLimits limits, std::function<bool()> is_stopping)
    : socket_(socket),
      limits_(limits),
      is_stopping_(std::move(is_stopping)),
      latest_(steady_clock::now() + limits.request) {
  of_thread = this;
}

Connection::~Connection() {
  ::shutdown(socket_, SHUT_WR);
  if (closes_ && !is_stopping_()) take_leave();
  ::close(socket_);
  of_thread = nullptr;
}

Connection& Connection::of_this_thread() { return *of_thread; }

// A socket that is closed with bytes unread resets the connection, and the client may lose the answer.
void Connection::take_leave() const {
  const auto latest = steady_clock::now() + kLeaveTaking;
  std::array<char, 8192> unread{};
  while (steady_clock::now() < latest && wait_for_input(latest) &&
         ::recv(socket_, unread.data(), unread.size(), MSG_DONTWAIT) > 0) {
  }
}

bool Connection::begin_request(milliseconds idle) {
  const bool is_there = begin_ < end_ || wait_for_input(steady_clock::now() + idle);
  latest_ = steady_clock::now() + limits_.request;
  return is_there;
}

bool Connection::is_gone() const {
  return (poll_once(socket_, POLLRDHUP, milliseconds(0)) & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool Connection::is_readable() const { return begin_ < end_ || poll_once(socket_, POLLIN, milliseconds(0)) != 0; }

bool Connection::is_writable() const { return wait_for_room() && !is_gone(); }

bool Connection::wait_for_input(Time latest) const {
  for (;;) {
    const milliseconds most = until(latest, kSlice);
    if (poll_once(socket_, POLLIN, most) != 0) return true;
    if (most == milliseconds(0) || is_stopping_()) return false;
  }
}

bool Connection::wait_for_room() const {
  const auto latest = steady_clock::now() + limits_.silence;
  for (;;) {
    const milliseconds most = until(latest, kSlice);
    if (const short found = poll_once(socket_, POLLOUT, most)) return (found & (POLLHUP | POLLERR)) == 0;
    if (most == milliseconds(0)) return false;
  }
}

ssize_t Connection::fill() {
  const auto now = steady_clock::now();
  if (now >= latest_ || !wait_for_input(std::min(latest_, now + limits_.silence))) return -1;
  begin_ = end_ = 0;
  const ssize_t size = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (size > 0) end_ = static_cast<std::size_t>(size);
  return size;
}

ssize_t Connection::read(char* to, std::size_t size) {
  if (begin_ == end_)
    if (const ssize_t filled = fill(); filled <= 0) {
      closes_ = true;  // nobody knows where the next request begins
      return filled;
    }
  const std::size_t count = std::min(size, end_ - begin_);
  std::copy_n(buffer_.data() + begin_, count, to);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, std::size_t size) {
  for (;;) {
    if (!wait_for_room()) return -1;
    const ssize_t sent = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0 || (errno != EAGAIN && errno != EINTR)) return sent;
  }
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const { name_of(::getpeername, socket_, ip, port); }

void Connection::get_local_ip_and_port(std::string& ip, int& port) const { name_of(::getsockname, socket_, ip, port); }

}  // namespace dculab::http
