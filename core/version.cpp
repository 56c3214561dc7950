#include "core/version.hpp"

namespace dculab {

const char* version() { return DCULAB_VERSION; }

}  // namespace dculab
