// What a client is told when its request is refused, in OpenAI's words.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace dculab::http {

class ApiError : public std::runtime_error {
 public:
  // `status` of HTTP. `param`: the parameter that is wrong; empty: none is.
  ApiError(int status, const std::string& message, std::string param = {}, std::string code = {})
      : std::runtime_error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] const std::string& param() const { return param_; }
  [[nodiscard]] const std::string& code() const { return code_; }

  // {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}
  [[nodiscard]] std::string json() const;

 private:
  int status_;
  std::string param_, code_;
};

// A parameter that is wrong: 400.
[[nodiscard]] inline ApiError bad_parameter(const std::string& param, const std::string& message) {
  return {400, param + ": " + message, param};
}

}  // namespace dculab::http
