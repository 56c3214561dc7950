// A client's connection, as the HTTP library reads and writes it. It waits with poll(), which takes every descriptor:
// the library's own streams use select(), which takes none above 1023.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>

namespace dculab::http {

struct ConnectionLimits {
  std::chrono::milliseconds silence{10'000};  // until something can be read, or written
  std::chrono::milliseconds request{60'000};  // from a request's first byte to the last of its body
};

class Connection final : public httplib::Stream {
 public:
  // Owns `socket`. Where `is_stopping` says so, nothing more is read.
  Connection(socket_t socket, ConnectionLimits limits, std::function<bool()> is_stopping);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The one that this thread serves. Precondition: it serves one.
  [[nodiscard]] static Connection& of_this_thread();

  // Waits at most so long for the first byte of a request, whose time begins with it.
  [[nodiscard]] bool begin_request(std::chrono::milliseconds idle);

  // Ends the connection behind the answer: for what has not been read.
  void close_afterwards() { closes_ = true; }
  [[nodiscard]] bool closes() const { return closes_; }

  // Whether the client has closed its end.
  [[nodiscard]] bool is_gone() const;

  [[nodiscard]] bool is_readable() const override;
  // Waits until it is, at most the limit's silence.
  [[nodiscard]] bool is_writable() const override;
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] bool wait_for_input(Time latest) const;
  [[nodiscard]] bool wait_for_room() const;
  [[nodiscard]] ssize_t fill();
  void take_leave() const;

  socket_t socket_;
  ConnectionLimits limits_;
  std::function<bool()> is_stopping_;
  Time latest_;  // for the request that is being read
  bool closes_ = false;
  std::array<char, 8192> buffer_{};
  std::size_t begin_ = 0, end_ = 0;  // what has been received and not been read
};

}  // namespace dculab::http
