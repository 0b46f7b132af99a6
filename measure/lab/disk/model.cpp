#include "model.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "config_text.hpp"
#include "profile_table.hpp"
#include "rehearsed.hpp"
#include "simulated.hpp"

namespace iojoule::lab {

std::unique_ptr<Model> read_model(const std::string& path, std::uint64_t step_ns) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error(path + ": cannot be read");
  const std::string said = text.str();
  if (said.starts_with(ProfileTable::first_word)) {
    return std::make_unique<Rehearsed>(ProfileTable::read(said), step_ns);
  }
  return std::make_unique<Simulated>(sim::read_drive_text(said), step_ns);
}

}  // namespace iojoule::lab
