#include "core/router.hpp"

#include <algorithm>
#include <cmath>

#include "core/prefix_cache.hpp"

namespace dculab {
namespace {

constexpr double kMostOfItsShare = 1.25;

[[nodiscard]] std::size_t least(std::span<const ReplicaLoad> loads, std::int64_t ReplicaLoad::*figure) {
  return static_cast<std::size_t>(std::ranges::min_element(loads, {}, figure) - loads.begin());
}

}  // namespace

std::string_view name(Routing routing) {
  switch (routing) {
    case Routing::round_robin:
      return "round_robin";
    case Routing::random:
      return "random";
    case Routing::least_requests:
      return "least_requests";
    case Routing::least_tokens:
      return "least_tokens";
    case Routing::prefix_affinity:
      return "prefix_affinity";
  }
  return "?";
}

std::size_t Router::choose(const Request& request, std::span<const ReplicaLoad> loads) {
  switch (routing_) {
    case Routing::round_robin:
      return turn_++ % loads.size();
    case Routing::random:
      return random_() % loads.size();
    case Routing::least_requests:
      return least(loads, &ReplicaLoad::requests);
    case Routing::least_tokens:
      return least(loads, &ReplicaLoad::tokens);
    case Routing::prefix_affinity:
      return by_prefix(request, loads);
  }
  return 0;
}

std::size_t Router::by_prefix(const Request& request, std::span<const ReplicaLoad> loads) const {
  const std::span<const TokenId> prompt = request.prompt_token_ids;
  const PrefixHash hash = extend({}, prompt.first(std::min(prompt.size(), static_cast<std::size_t>(block_size_))));
  double all = 1;
  for (const ReplicaLoad& load : loads) all += static_cast<double>(load.requests);
  const double most = std::ceil(kMostOfItsShare * all / static_cast<double>(loads.size()));
  std::size_t place = hash.low % loads.size();
  while (static_cast<double>(loads[place].requests + 1) > most) place = (place + 1) % loads.size();
  return place;
}

}  // namespace dculab
