// How many valid pages blocks have under uniform random writes, as a share of blocks for each number
// from 0 to `pages`: models of B. Van Houdt, A mean field model for a class of garbage
// collection algorithms in flash-based solid state drives (SIGMETRICS 2013).
#pragma once

#include <cstdint>
#include <vector>

namespace iojoule::sim::compat {

// Victims are any blocks. `used` is the share of valid pages, below 1.
std::vector<double> valid_pages_at_random(std::uint32_t pages, double used);

// The victim is the best of `choices` blocks drawn at random. As in MQSim, the model's differential
// equation is followed for ten units of its time only, not to its fixed point, and from the first
// step on no block is full.
std::vector<double> valid_pages_by_choice(std::uint32_t pages, double used, unsigned choices);

// Victims are any blocks with at most the share `threshold` of valid pages.
std::vector<double> valid_pages_below(std::uint32_t pages, double used, double threshold);

}  // namespace iojoule::sim::compat
