// Errors: one exception type that says what was attempted, where, and how much.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "outcore/api.h"

namespace outcore {

/// What a failing operation was about. Fields left at their defaults are not mentioned in the message.
struct ErrorContext {
  std::string attempted = {};  ///< a verb phrase: "write", "preallocate", "open"
  std::string path = {};       ///< file or directory concerned
  std::int64_t offset = -1;    ///< byte offset in the file
  std::int64_t size_bytes = -1;
  std::string detail = {};  ///< what else the user needs: what is free, what was expected, what to do
};

/// Stands in for an errno value where none of the system's fits. The message then has no text of the system.
/// In Python, errno is None.
inline constexpr int no_errno = -1;

/// Every failure in the library is thrown as this type. `code()` carries an errno value of the generic
/// category, `what()` reads e.g.
/// "rank 2: write of 4194304 bytes at offset 8388608 of /scratch/x: No space left on device (free: 0 bytes)".
class OUTCORE_API Error : public std::system_error {
 public:
  Error(int errno_value, ErrorContext context);
  Error(int errno_value, ErrorContext context, int rank);  ///< an error of another process

  [[nodiscard]] const ErrorContext& context() const noexcept { return context_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int errno_value() const noexcept { return code().value(); }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorContext context_;
  std::string message_;
  int rank_;
};

/// Rank named in messages, traces and names of scratch; 0 until set. Set once, before other threads start.
OUTCORE_API void set_process_rank(int rank, int count) noexcept;
[[nodiscard]] OUTCORE_API int process_rank() noexcept;
[[nodiscard]] OUTCORE_API int process_count() noexcept;

}  // namespace outcore
