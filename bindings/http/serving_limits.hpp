// How many clients a server takes at a time.
#pragma once

#include <cstddef>
#include <string>

namespace dculab::http {

struct ServingLimits {
  int most_requests = 0;             // that run or wait
  std::size_t most_connections = 0;  // some more, so that pages answer, and refusals
  std::string less_than_asked{};     // why fewer requests wait than were asked for; empty: they do not
};

// Of requests that run and wait, where `descriptors` are left for connections. Throws InputError where fewer would run
// than are to.
[[nodiscard]] ServingLimits serving_limits(int max_num_seqs, int most_waiting, std::size_t descriptors);

// The descriptors that this process may still open, but for 64. Raises its own limit as far as the system lets it.
[[nodiscard]] std::size_t free_descriptors();

}  // namespace dculab::http
