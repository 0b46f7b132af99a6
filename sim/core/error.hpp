// How the core says no. The binding turns these into IojouleErrors of the same meaning.
#pragma once

#include <stdexcept>
#include <string>

namespace iojoule::sim {

// The configuration cannot be run; `field` names the parameter as config.hpp spells it.
struct ConfigError : std::runtime_error {
  ConfigError(std::string field_, const std::string& message)
      : std::runtime_error(message), field(std::move(field_)) {}
  std::string field;
};

// A trace file cannot be read; `line` counts from 1, 0 when the whole file is meant.
struct TraceError : std::runtime_error {
  TraceError(std::string path_, std::size_t line_, const std::string& message)
      : std::runtime_error(message), path(std::move(path_)), line(line_) {}
  std::string path;
  std::size_t line;
};

// The run went past a limit of Limits; `limit` names it.
struct LimitError : std::runtime_error {
  LimitError(std::string limit_, const std::string& message)
      : std::runtime_error(message), limit(std::move(limit_)) {}
  std::string limit;
};

// The model reached a state that MQSim aborts on; the message says which.
struct ModelError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Cancelled : std::runtime_error {
  Cancelled() : std::runtime_error("cancelled") {}
};

}  // namespace iojoule::sim
