// A drive as plain text, one `name value` a line, for programs that work without Python.
#pragma once

#include <string>

#include "config.hpp"

namespace iojoule::sim {

// Every field, numbers exact.
std::string write_drive_text(const DeviceConfig& device);

// What write_drive_text wrote. A field that is missing keeps its default.
//
// Throws ConfigError for a line that it does not know or cannot read.
DeviceConfig read_drive_text(const std::string& text);

}  // namespace iojoule::sim
