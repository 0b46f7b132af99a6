// The words of physical/options.hpp as text.
#pragma once

#include "../names.hpp"
#include "options.hpp"

namespace iojoule::sim {

template <>
inline constexpr std::array<std::string_view, 2> names_of<WriteAllocation>{"striped", "round_robin"};
template <>
inline constexpr std::array<std::string_view, 3> names_of<MultiPlane>{"none", "same_page",
                                                                      "any_page"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<UnwrittenReads>{"flash", "zeros"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<InitialState>{"steady", "filled"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<SlcWhenFull>{"direct", "fold"};
template <>
inline constexpr std::array<std::string_view, 7> names_of<HostEngine>{
    "none", "psync", "posixaio", "libaio", "io_uring", "io_uring_cmd", "spdk"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Completion>{"interrupt", "polled"};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Arrivals>{"exponential", "periodic"};

}  // namespace iojoule::sim
