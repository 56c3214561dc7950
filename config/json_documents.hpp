// Files of JSON as Python's programs write them: one document or several behind each other, a line each or indented,
// with Infinity and NaN, which are no JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fields/node.hpp"

namespace dculab::config {

// Each document, in order; Infinity is the text "inf", -Infinity "-inf", and NaN is null. Throws InputError for what is
// no JSON else.
[[nodiscard]] std::vector<Node> json_documents(const std::string& file, std::string_view text);

// The keys of the first document where it is an object, or of its first item where it is a list; empty where it is
// neither. In linear time, without building anything; what breaks off or is no JSON gives what was seen until there.
[[nodiscard]] std::vector<std::string_view> first_keys(std::string_view text);

}  // namespace dculab::config
