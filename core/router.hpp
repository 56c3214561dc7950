// Which replica a request goes to: of the engine, or of the simulator's deployments.
//
//   round_robin      in turn
//   random           any, drawn from a fixed seed
//   least_requests   with the fewest unfinished requests
//   least_tokens     with the fewest tokens of unfinished requests, prompts and answers so far: the KV cache they need
//   prefix_affinity  that of the prompt's first block, as long as it has at most 1.25 times its share of the unfinished
//                    requests, else the next one (Mirrokni et al. 2018, "Consistent hashing with bounded loads")
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string_view>

#include "core/request.hpp"

namespace dculab {

enum class Routing : std::uint8_t { round_robin, random, least_requests, least_tokens, prefix_affinity };
[[nodiscard]] std::string_view name(Routing routing);

// What a router sees of a replica.
struct ReplicaLoad {
  std::int64_t requests = 0;
  std::int64_t tokens = 0;

  ReplicaLoad& operator+=(const ReplicaLoad& other) {
    requests += other.requests;
    tokens += other.tokens;
    return *this;
  }
};

class Router {
 public:
  Router(Routing routing, int block_size) : routing_(routing), block_size_(block_size) {}

  // An index into `loads`; of equal ones the first. Precondition: loads is not empty.
  [[nodiscard]] std::size_t choose(const Request& request, std::span<const ReplicaLoad> loads);

 private:
  [[nodiscard]] std::size_t by_prefix(const Request& request, std::span<const ReplicaLoad> loads) const;

  Routing routing_;
  int block_size_;
  std::size_t turn_ = 0;
  std::mt19937_64 random_{1};
};

}  // namespace dculab
