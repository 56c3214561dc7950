#include "bindings/http/server_page.hpp"

namespace dculab::http {

std::string_view server_page() {
  return
#include "server_page.inc"
      ;
}

}  // namespace dculab::http
