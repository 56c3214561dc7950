#include "bindings/http/serving_limits.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "core/error.hpp"

namespace dculab::http {
namespace {

constexpr std::size_t kBesideRequests = 64;  // connections
constexpr std::size_t kBesideConnections = 64, kMostDescriptors = std::size_t{1} << 20;

}  // namespace

ServingLimits serving_limits(int max_num_seqs, int most_waiting, std::size_t descriptors) {
  const std::size_t room = descriptors > kBesideRequests ? descriptors - kBesideRequests : 0;
  const std::string open_files = "the limit of open files allows " + std::to_string(room) + " requests at a time";
  if (static_cast<std::size_t>(max_num_seqs) > room)
    throw InputError("--max-num-seqs " + std::to_string(max_num_seqs), open_files + "; raise it with ulimit -n");
  const std::size_t asked = static_cast<std::size_t>(max_num_seqs) + static_cast<std::size_t>(most_waiting);
  const std::size_t requests = std::min(asked, room);
  ServingLimits limits{.most_requests = static_cast<int>(requests), .most_connections = requests + kBesideRequests};
  if (requests < asked)
    limits.less_than_asked = open_files + ": " + std::to_string(requests - static_cast<std::size_t>(max_num_seqs)) +
                             " may wait, not " + std::to_string(most_waiting);
  return limits;
}

std::size_t free_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  std::error_code none;
  const std::filesystem::directory_iterator open("/proc/self/fd", none);
  const auto taken = static_cast<std::size_t>(std::distance(begin(open), end(open))) + kBesideConnections;
  const std::size_t most = std::min<std::size_t>(limit.rlim_cur, kMostDescriptors);
  return most > taken ? most - taken : 0;
}

}  // namespace dculab::http
