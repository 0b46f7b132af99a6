// How valid the blocks of a plane are after very many overwrites.
#pragma once

#include <cstdint>
#include <vector>

#include "../config.hpp"
#include "collector.hpp"

namespace iojoule::sim::physical {

// Units that are overwritten at one rate: a flow's, or its hot or cold part.
struct WriteClass {
  double units = 0;  // share of all valid units
  double rate = 0;   // share of all writes
};

// Valid units of sampled blocks, least valid (longest ago written) first: [block][class], each as a
// share of the block.
struct BlockSample {
  std::size_t blocks = 0, classes = 0;
  std::vector<float> valid;
  float of(std::size_t block, std::size_t which) const { return valid[block * classes + which]; }
};

// Overwrites `utilisation` x blocks worth of valid units in a plane of a few hundred blocks until it
// no longer remembers how it began. What is moved goes to blocks of its own, as in the drive.
BlockSample sample_steady_state(double utilisation, const std::vector<WriteClass>& classes,
                                VictimPolicy policy, std::uint32_t blocks_per_plane,
                                double overprovisioning, std::uint64_t seed);

}  // namespace iojoule::sim::physical
