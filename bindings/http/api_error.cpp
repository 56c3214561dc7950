#include "bindings/http/api_error.hpp"

#include "bindings/http/openai_fields.hpp"

namespace dculab::http {
namespace {

[[nodiscard]] std::string type_of(int status) {
  if (status == 404) return "not_found_error";
  if (status == 503) return "service_unavailable_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

std::string ApiError::json() const {
  ErrorBody body{.message = what(), .type = type_of(status_), .param = {}, .code = {}};
  if (!param_.empty()) body.param = param_;
  if (!code_.empty()) body.code = code_;
  return text_of(ErrorDocument{std::move(body)});
}

}  // namespace dculab::http
