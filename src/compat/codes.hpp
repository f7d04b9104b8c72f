// The codes of the original that functions with classic names return, and their meanings.
#pragma once

namespace outcore::compat {

namespace eaf {
enum Code {
  end_of_file = -10001,
  open_failed = -10004,
  close_failed = -10005,
  invalid_fd = -10006,
  write_failed = -10007,
  awrite_failed = -10008,
  read_failed = -10009,
  aread_failed = -10010,
  wait_failed = -10011,
  probe_failed = -10012,
  unlink_failed = -10013,
  stat_failed = -10015,
  fractional_offset = -10018,
  truncate_failed = -10019,
  length_failed = -10020
};
}  // namespace eaf

namespace elio {
enum Code {
  write_failed = -1999,
  awrite_failed = -1998,
  read_failed = -1997,
  aread_failed = -1996,
  no_request = -1994,
  wrong_mode = -1993,
  no_directory = -1992,
  stat_failed = -1991,
  open_failed = -1990,
  delete_failed = -1987,
  close_failed = -1986,
  name_too_long = -1983,
  no_number = -1981,
  truncate_failed = -1978,
  end_of_file = -1977,
  sync_failed = -1976
};
}  // namespace elio

/// The text of a code of the original, also of one that is never returned here, or of an errno value. Empty
/// for other numbers.
[[nodiscard]] const char* meaning(int code) noexcept;

}  // namespace outcore::compat
