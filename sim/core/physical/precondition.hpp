// The drive as it stands before the run.
#pragma once

#include <vector>

#include "../watch.hpp"
#include "context.hpp"

namespace iojoule::sim::physical {

// Writes each flow's initial occupancy, exact to the unit, without simulating the writing. With
// InitialState::steady the blocks look as after very many overwrites by the flow: how many units
// are valid in which block comes from a small simulation of one plane with the drive's own policy
// for choosing victims. Checks that garbage collection will have room.
void precondition(Context& context, const std::vector<FlowConfig>& flows, Watch& watch);

}  // namespace iojoule::sim::physical
