// Rows of block traces in text: numbers out of lines, for every format that a Layout describes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace iojoule::traces {

enum class Dialect : std::uint8_t { table, blkparse, fio_iolog_2, fio_iolog_3 };

// Where the values of a row stand and in which units. Columns count from 0; -1: there is none.
struct Layout {
  Dialect dialect = Dialect::table;
  char separator = ',';  // a blank stands for any run of blanks and tabs
  int columns_min = 0, columns_max = 0;
  int elastic = -1;  // the column that may hold separators, so that later ones count from the end
  int time = 0, offset = 1, size = 2, op = 3, volume = -1, volume_2 = -1;
  char volume_joint = '_';
  std::int64_t time_origin = 0;  // subtracted from whole units
  std::int64_t time_unit_ps = 1000;
  bool time_fraction = false;  // whether times may have decimals
  std::int64_t offset_unit = 1, size_unit = 1;
  std::vector<std::string> reads, writes, ignored;  // the operations
  char comment = '\0';                              // lines that begin so are passed over
  char action = 'Q';                                // blkparse: the event that is a request
};

// What is wrong with a row; the first ends the reading, the others are counted.
enum class Defect : std::uint8_t { none, columns, time, offset, size, operation, count_ };
enum class Oddity : std::uint8_t { empty, ignored, discard, flush, count_ };

struct Rows {
  std::vector<std::int64_t> arrival_ns, offset_bytes, size_bytes;
  std::vector<std::uint8_t> is_write;
  std::vector<std::uint32_t> volume;
  std::vector<std::uint64_t> line;
};

class RowParser {
 public:
  explicit RowParser(Layout layout) : layout_(std::move(layout)) {}

  // Reads whole lines; stops at the first defect, which defect(), defect_line() and defect_text()
  // then tell.
  void feed(std::string_view text, Rows& rows);

  Defect defect() const { return defect_; }
  std::uint64_t lines() const { return line_; }
  const std::string& defect_text() const { return defect_text_; }
  bool ended() const { return ended_; }
  // How many rows were odd, and the line of the first of them.
  std::uint64_t odd(Oddity kind) const { return odd_[static_cast<std::size_t>(kind)].count; }
  std::uint64_t odd_line(Oddity kind) const { return odd_[static_cast<std::size_t>(kind)].first; }
  const std::vector<std::string>& volumes() const { return volumes_; }

 private:
  struct Seen {
    std::uint64_t count = 0, first = 0;
  };
  static constexpr int tokens_limit = 32;

  int split(std::string_view line);
  Defect table_row(std::string_view line, Rows& rows);
  Defect blkparse_row(std::string_view line, Rows& rows);
  Defect iolog_row(std::string_view line, Rows& rows);
  void note(Oddity kind);
  void add(Rows& rows, std::int64_t time, std::int64_t offset, std::int64_t size, bool write,
           std::uint32_t volume);
  std::uint32_t volume_id(std::string_view name);
  bool time_of(std::string_view token, std::int64_t& ns) const;
  std::string_view token(int column, int count) const;

  Layout layout_;
  std::array<std::string_view, tokens_limit> tokens_{};
  std::uint64_t line_ = 0;
  std::int64_t waited_ns_ = 0;
  bool ended_ = false;
  Defect defect_ = Defect::none;
  std::string defect_text_;
  std::array<Seen, static_cast<std::size_t>(Oddity::count_)> odd_{};
  std::vector<std::string> volumes_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::array<std::uint32_t, 10000> number_ids_{};  // of short numbers: the id plus 1
};

}  // namespace iojoule::traces
