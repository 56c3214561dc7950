// How the devices of a replica can share a model, and how replicas fit into servers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model_shape.hpp"
#include "sim/hardware/deployment.hpp"

namespace dculab::study {

// Devices to choose from.
struct FleetOffer {
  int devices = 1;                    // of a server
  std::optional<int> servers{};       // at most; absent: as many as it takes
  bool one_replica_a_server = false;  // of CPU machines, whose devices are processes that share it

  struct Replicas {
    int count = 0;
    sim::ReplicaDevices devices;
  };

  // Servers that hold all of them, which may share one: the largest first, each in the first that has room.
  // Precondition: none is larger than a server.
  [[nodiscard]] int servers_for(const std::vector<Replicas>& replicas) const;

  // Whole replicas; a replica that is larger than a server has servers of its own.
  [[nodiscard]] int replicas_of_server(const sim::ReplicaDevices& replica) const;
  [[nodiscard]] int servers_of_replica(const sim::ReplicaDevices& replica) const;
  [[nodiscard]] std::optional<int> most_replicas(const sim::ReplicaDevices& replica) const;
};

// The layouts of a replica of up to `most` devices, fewer devices first, then fewer stages. Each could be refused by
// sim::problems().
[[nodiscard]] std::vector<sim::ReplicaDevices> replica_layouts(const ModelShape& model, int most);

// Makes the deployment's replicas such.
void set_replica(const sim::ReplicaDevices& devices, sim::Deployment& deployment);

// "TP 4", "TP 2 x PP 2", "EP 8", "EP 8, TP 2"
[[nodiscard]] std::string layout_text(const sim::ReplicaDevices& devices);

}  // namespace dculab::study
