// Which release of dculab this is: project(VERSION) of CMakeLists.txt.
#pragma once

namespace dculab {

[[nodiscard]] const char* version();  // "0.3.0"

}  // namespace dculab
