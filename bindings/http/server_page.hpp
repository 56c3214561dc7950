// The page at "/": predicted beside measured step times while the engine runs.
#pragma once

#include <string_view>

namespace dculab::http {

// HTML with all that it needs but /steps and /metrics of the same server.
[[nodiscard]] std::string_view server_page();

}  // namespace dculab::http
