// Whether the tables of the drive agree with each other.
#pragma once

namespace iojoule::sim::physical {

struct Context;

// Every written logical unit lies in exactly one physical unit, that unit knows it, each block
// counts what it holds, and no block that is free holds anything. Takes time in proportion to the drive.
//
// Throws ModelError with the first thing that does not hold.
void check_consistency(const Context& context);

}  // namespace iojoule::sim::physical
