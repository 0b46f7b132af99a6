// The words of config.hpp as text: how a choice is spelled outside the core.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "config.hpp"

namespace iojoule::sim {

// In the order of the enumerators.
template <class Choice>
inline constexpr std::array<std::string_view, 0> names_of{};

template <>
inline constexpr std::array<std::string_view, 2> names_of<Mode>{"compat", "physical"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<HostInterface>{"nvme", "sata"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<CacheMechanism>{"simple", "advanced"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Sharing>{"shared",
                                                                   "equal_partitioning"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Mapping>{"page_level", "hybrid"};
template <>
inline constexpr std::array<std::string_view, 3> names_of<Scheduler>{
    "out_of_order", "priority_out_of_order", "flin"};
template <>
inline constexpr std::array<std::string_view, 6> names_of<VictimPolicy>{
    "greedy", "rga", "random", "random_p", "random_pp", "fifo"};
template <>
inline constexpr std::array<std::string_view, 3> names_of<FlashTechnology>{"slc", "mlc", "tlc"};
template <>
inline constexpr std::array<std::string_view, 4> names_of<Suspension>{"none", "erase", "program",
                                                                      "program_erase"};
template <>
inline constexpr std::array<std::string_view, 4> names_of<Priority>{"urgent", "high", "medium",
                                                                    "low"};
template <>
inline constexpr std::array<std::string_view, 4> names_of<CachingMode>{
    "turned_off", "write_cache", "read_cache", "write_read_cache"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<FlowKind>{"synthetic", "trace"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Generator>{"bandwidth", "queue_depth"};
template <>
inline constexpr std::array<std::string_view, 3> names_of<AddressDistribution>{
    "streaming", "random_uniform", "random_hotcold"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<SizeDistribution>{"fixed", "normal"};

template <class Choice>
constexpr std::string_view name_of(Choice choice) {
  return names_of<Choice>.at(static_cast<std::size_t>(choice));
}

}  // namespace iojoule::sim
