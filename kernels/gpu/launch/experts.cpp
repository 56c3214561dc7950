#include "kernels/gpu/experts/combine_experts.hip.hpp"
#include "kernels/gpu/experts/route_tokens.hip.hpp"
#include "kernels/gpu/experts/sort_by_expert.hip.hpp"
#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

void require_at_most(int count, int most, const std::string& of) {
  if (count >= 1 && count <= most) return;
  throw InputError("a router with " + std::to_string(count) + " " + of + " has no GPU kernel; there is one for 1 to " +
                   std::to_string(most));
}

void require_rule(const RouterRule& rule) {
  require_at_most(rule.num_experts, kMostExperts, "experts");
  require_at_most(rule.experts_per_token, std::min(kMostExpertsPerToken, rule.num_experts), "experts of a token");
  require_at_most(rule.num_groups, kMostExpertGroups, "groups of experts");
  require_multiple("a router", "experts", rule.num_experts, rule.num_groups);
  require_at_most(rule.groups_per_token, rule.num_groups, "groups of a token");
  if (rule.experts_per_token > rule.groups_per_token * rule.group_size())
    throw InputError("a router that chooses " + std::to_string(rule.experts_per_token) + " of " +
                     std::to_string(rule.groups_per_token * rule.group_size()) +
                     " experts has no GPU kernel; a token's groups must have as many as it chooses");
}

}  // namespace

void start(Stream& stream, const RouteTokens& args) {
  require_activation("the logits of a router", args.logits.dtype);
  require_rule(args.rule);
  if (args.num_tokens == 0) return;
  with_wave_size(stream, [&]<int kWave>() {
    const int workgroups = ceiling_quotient(args.num_tokens, kRouteThreads / kWave);
    launch(stream, {.x = workgroups, .threads = kRouteThreads}, route_tokens_kernel<kWave>, args);
    launch(stream, {.x = args.rule.num_experts, .threads = kExpertThreads}, sort_by_expert_kernel<kWave>, args);
  });
}

void start(Stream& stream, const CombineExperts& args) {
  require_activation("what experts gave", args.y.dtype);
  require_activation("what shared experts gave", args.shared.dtype);
  require_activation("the sum of experts", args.out.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .y = ceiling_quotient(args.width, kCombinePiece), .threads = kCombineThreads},
           combine_experts_kernel<kWave>, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
