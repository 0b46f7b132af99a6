#include "config_text.hpp"

#include <array>
#include <charconv>
#include <map>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <vector>

#include "error.hpp"
#include "names.hpp"
#include "physical/names.hpp"

namespace iojoule::sim {
namespace {

// One list of the fields serves both directions: `visit(io, record)` names each field to `io`.
#define FIELD(name) io.field(#name, record.name)

template <class Io>
void visit(Io& io, NandOptions& record) {
  FIELD(write_allocation); FIELD(multi_plane); FIELD(unwritten_reads); FIELD(initial_state);
  FIELD(mapping_unit_bytes); FIELD(cache_register); FIELD(transfer_metadata); FIELD(codeword_bytes);
  FIELD(ecc_decode_ns); FIELD(partial_read_bytes); FIELD(partial_read_share); FIELD(read_command_ns); FIELD(read_command_plane_ns);
  FIELD(program_command_ns); FIELD(program_command_plane_ns); FIELD(erase_command_ns);
  FIELD(erase_command_plane_ns); FIELD(resume_ns); FIELD(suspends_max); FIELD(suspended_max_ns);
  FIELD(write_wait_max_ns);
}

template <class Io>
void visit(Io& io, LinkOptions& record) {
  FIELD(max_payload_bytes); FIELD(packet_overhead_bytes); FIELD(latency_ns);
  FIELD(further_page_ns);
}

template <class Io>
void visit(Io& io, ControllerOptions& record) {
  FIELD(command_latency_ns); FIELD(command_occupancy_ns); FIELD(max_transfer_bytes);
  FIELD(power_loss_protection); FIELD(dirty_pages_per_plane); FIELD(partial_page_wait_ns);
  FIELD(mapping_entry_bytes); FIELD(mapping_entries_per_line);
}

template <class Io>
void visit(Io& io, SlcOptions& record) {
  FIELD(static_blocks_per_plane); FIELD(dynamic_blocks_per_plane); FIELD(page_read_ns);
  FIELD(page_program_ns); FIELD(block_erase_ns); FIELD(when_full); FIELD(fold_idle_ns);
}

template <class Io>
void visit(Io& io, EnergyOptions& record) {
  FIELD(page_read_joules); FIELD(page_program_joules); FIELD(block_erase_joules);
  FIELD(slc_page_read_joules); FIELD(slc_page_program_joules); FIELD(slc_block_erase_joules);
  FIELD(array_read_watts); FIELD(array_program_watts); FIELD(array_erase_watts);
  FIELD(channel_joules_per_byte); FIELD(dram_joules_per_byte); FIELD(dram_refresh_watts);
  FIELD(controller_idle_watts); FIELD(controller_active_watts); FIELD(controller_busy_watts);
  FIELD(controller_busy_commands); FIELD(controller_busy_exponent);
  FIELD(controller_joules_per_command); FIELD(controller_joules_per_byte); FIELD(link_idle_watts);
  FIELD(link_active_watts); FIELD(link_joules_per_byte); FIELD(power_step_ns);
}

template <class Io>
void visit(Io& io, PowerState& record) {
  FIELD(max_power_watts); FIELD(operational); FIELD(entry_latency_ns); FIELD(exit_latency_ns);
  FIELD(idle_power_watts); FIELD(active_power_watts);
}

template <class Io>
void visit(Io& io, PowerTransition& record) {
  FIELD(from_state); FIELD(to_state); FIELD(idle_ns);
}

template <class Io>
void visit(Io& io, PowerCommand& record) {
  FIELD(time_ns); FIELD(state);
}

template <class Io>
void visit(Io& io, PowerOptions& record) {
  FIELD(states); FIELD(initial_state); FIELD(autonomous_transitions); FIELD(commands);
  FIELD(cap_window_ns); FIELD(cap_burst_ns); FIELD(cap_reopen_ns);
}

template <class Io>
void visit(Io& io, PhysicalOptions& record) {
  FIELD(nand); FIELD(link); FIELD(controller); FIELD(slc); FIELD(energy); FIELD(power);
  FIELD(warmup_ns); FIELD(finish_background); FIELD(finish_folding); FIELD(idle_tail_ns);
  FIELD(check_consistency);
}

template <class Io>
void visit(Io& io, DeviceConfig& record) {
  FIELD(mode); FIELD(link_lane_gigabytes_per_second); FIELD(link_lanes);
  FIELD(sata_processing_delay_ns); FIELD(seed); FIELD(preconditioning); FIELD(host_interface);
  FIELD(io_queue_depth); FIELD(queue_fetch_size); FIELD(cache_mechanism); FIELD(cache_sharing);
  FIELD(cache_bytes); FIELD(dram_row_bytes); FIELD(dram_megatransfers_per_second);
  FIELD(dram_burst_bytes); FIELD(dram_trcd_ns); FIELD(dram_tcl_ns); FIELD(dram_trp_ns);
  FIELD(mapping); FIELD(mapping_ideal); FIELD(cmt_bytes); FIELD(cmt_sharing);
  FIELD(plane_allocation); FIELD(scheduler); FIELD(overprovisioning_ratio); FIELD(gc_threshold);
  FIELD(gc_policy); FIELD(gc_copyback); FIELD(gc_preemptible); FIELD(gc_hard_threshold);
  FIELD(wear_levelling_dynamic); FIELD(wear_levelling_static); FIELD(wear_levelling_threshold);
  FIELD(suspend_erase_for_read_ns); FIELD(suspend_erase_for_write_ns);
  FIELD(suspend_program_for_read_ns); FIELD(channels); FIELD(channel_width_bytes);
  FIELD(channel_megatransfers_per_second); FIELD(chips_per_channel); FIELD(flash_technology);
  FIELD(suspension); FIELD(page_read_ns); FIELD(page_program_ns); FIELD(block_erase_ns);
  FIELD(pe_cycles_limit); FIELD(suspend_erase_ns); FIELD(suspend_program_ns); FIELD(dies_per_chip);
  FIELD(planes_per_die); FIELD(blocks_per_plane); FIELD(pages_per_block); FIELD(page_bytes);
  FIELD(page_metadata_bytes); FIELD(physical);
}

#undef FIELD

template <class Value>
inline constexpr bool is_text = std::is_same_v<Value, std::string>;
template <class Value>
inline constexpr bool is_number = std::is_arithmetic_v<Value>;

class Writer {
 public:
  template <class Value>
  void field(std::string_view name, Value& value) {
    const std::string outer = path_;
    if (!path_.empty()) path_ += '.';
    path_ += name;
    put(value);
    path_ = outer;
  }

  std::string text() const { return text_.str(); }

 private:
  template <class Value>
  void put(Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      line(value ? "true" : "false");
    } else if constexpr (is_number<Value>) {
      std::array<char, 40> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
      line({digits.data(), end});
    } else if constexpr (std::is_enum_v<Value>) {
      line(name_of(value));
    } else if constexpr (is_text<Value>) {
      line(value);
    } else {
      visit(*this, value);
    }
  }
  template <class Each, std::size_t size>
  void put(std::array<Each, size>& values) {
    for (std::size_t i = 0; i < size; ++i) field(std::to_string(i), values[i]);
  }
  template <class Each>
  void put(std::vector<Each>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) field(std::to_string(i), values[i]);
  }
  void line(std::string_view value) { text_ << path_ << ' ' << value << '\n'; }

  std::string path_;
  std::ostringstream text_;
};

class Reader {
 public:
  explicit Reader(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      const std::size_t space = line.find(' ');
      if (space == std::string::npos) throw ConfigError(line, "has no value");
      values_[line.substr(0, space)] = line.substr(space + 1);
    }
  }

  template <class Value>
  void field(std::string_view name, Value& value) {
    const std::string outer = path_;
    if (!path_.empty()) path_ += '.';
    path_ += name;
    get(value);
    path_ = outer;
  }

  void refuse_rest() const {
    if (!values_.empty()) throw ConfigError(values_.begin()->first, "is no field of a drive");
  }

 private:
  template <class Value>
  void get(Value& value) {
    if constexpr (is_number<Value> || std::is_enum_v<Value> || is_text<Value>) {
      const auto found = values_.find(path_);
      if (found == values_.end()) return;
      const std::string word = found->second;
      values_.erase(found);
      read(word, value);
    } else {
      visit(*this, value);
    }
  }
  template <class Each, std::size_t size>
  void get(std::array<Each, size>& values) {
    for (std::size_t i = 0; i < size; ++i) field(std::to_string(i), values[i]);
  }
  // As many elements as there are lines for.
  template <class Each>
  void get(std::vector<Each>& values) {
    values.clear();
    for (std::size_t i = 0; has(std::to_string(i)); ++i) {
      values.emplace_back();
      field(std::to_string(i), values.back());
    }
  }
  bool has(const std::string& element) const {
    const std::string prefix = path_ + "." + element + ".";
    const auto next = values_.lower_bound(prefix);
    return next != values_.end() && next->first.compare(0, prefix.size(), prefix) == 0;
  }

  template <class Value>
  void read(const std::string& word, Value& value) const {
    bool known = false;
    if constexpr (std::is_same_v<Value, bool>) {
      known = word == "true" || word == "false";
      value = word == "true";
    } else if constexpr (is_number<Value>) {
      const char* end = word.data() + word.size();
      const auto told = std::from_chars(word.data(), end, value);
      known = told.ec == std::errc() && told.ptr == end;
    } else if constexpr (std::is_enum_v<Value>) {
      for (std::size_t i = 0; i < names_of<Value>.size(); ++i) {
        if (names_of<Value>[i] != word) continue;
        value = static_cast<Value>(i);
        known = true;
      }
    } else {
      value = word;
      known = true;
    }
    if (!known) throw ConfigError(path_, "cannot be read: " + word);
  }

  std::string path_;
  std::map<std::string, std::string> values_;
};

}  // namespace

std::string write_drive_text(const DeviceConfig& device) {
  DeviceConfig copy = device;  // one list of fields for both directions cannot be const
  Writer writer;
  visit(writer, copy);
  return writer.text();
}

DeviceConfig read_drive_text(const std::string& text) {
  DeviceConfig device;
  Reader reader(text);
  visit(reader, device);
  reader.refuse_rest();
  return device;
}

}  // namespace iojoule::sim
