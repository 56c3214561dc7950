// The members of a JSON object that a client sent: each is asked for by name, and what nobody asked for is refused.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/http/api_error.hpp"
#include "fields/node.hpp"

namespace dculab::http {

class RequestBody {
 public:
  // Throws ApiError for text that is no JSON object in UTF-8.
  explicit RequestBody(std::string_view text);

  // All throw ApiError, naming the parameter, for a value that is none of theirs. Null counts as absent.
  [[nodiscard]] const Node* member(std::string_view key);
  [[nodiscard]] std::optional<double> number(std::string_view key, double least, double most);
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most);
  [[nodiscard]] bool flag(std::string_view key, bool fallback);
  [[nodiscard]] std::optional<std::string> text(std::string_view key);

  // A parameter that is known, and of which only what changes nothing can be had: null, `neutral`, an empty list or
  // object.
  void must_be_neutral(std::string_view key, std::string_view neutral, const std::string& why);
  void ignore(std::string_view key) { static_cast<void>(member(key)); }

  // Throws ApiError for members that nobody asked for.
  void refuse_others() const;

 private:
  Node root_;
  std::set<std::string, std::less<>> asked_;
};

// The ids of a list of integers. Throws ApiError.
[[nodiscard]] std::vector<int> token_ids_of(const Node& list, const std::string& param);

}  // namespace dculab::http
