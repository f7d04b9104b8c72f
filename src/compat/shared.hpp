// The common parts of the classic names: Fortran's integers and texts, errors, numbers of requests, worlds.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "outcore/outcore.h"

/// Marks a function that is exported by its name.
#define OUTCORE_CLASSIC extern "C" OUTCORE_API

namespace outcore::compat {

#ifdef OUTCORE_PARIO_INTEGER4
using Integer = std::int32_t;
#else
using Integer = std::int64_t;  ///< Fortran's INTEGER and LOGICAL, as Global Arrays was built with
#endif

/// A text of Fortran, without the blanks at its end.
[[nodiscard]] std::string text_of(const char* characters, std::size_t length);
/// A text of C; empty if there is none.
[[nodiscard]] std::string text_of(const char* characters);
/// A text for Fortran: cut, or with blanks at its end.
void hand_out(const std::string& text, char* place, std::size_t length);
/// A text for C in memory of `size` bytes, with its final 0.
void hand_out_c(const std::string& text, char* place, std::size_t size);

/// Keeps the text of a failure of this thread, prints it if the program asked for that, and returns the code.
int failed(int code, const std::string& text);
/// A failure of the C interface: keeps its text with a code that the caller chooses.
int failed(int code);
/// The text of the last failure in this thread if it had this code; else the meaning of the code, empty for
/// an unknown code. ELIO_PENDING_ERR stands for the code of the last file that could not be opened.
[[nodiscard]] std::string error_text(int code);
/// Sets the code of a file that could not be opened.
void opening_failed(int code);
void print_errors(bool on);  ///< to the standard error output

/// The failure for the current exception; call it in a catch block. The code is the caller's, or (0) an errno
/// value.
int caught(int code) noexcept;
/// Runs the body of a function with a classic name. No exception leaves it: an exception becomes a failure.
template <class Body>
auto guarded(int code, Body body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return caught(code);
  }
}
template <class Body>
auto guarded(Body body) noexcept {
  return guarded(0, std::move(body));
}

/// A table of objects with positive numbers. Thread-safe.
template <class Thing>
class Numbered {
 public:
  int add(Thing thing) {
    const std::lock_guard guard(mutex_);
    do {
      went_round_ = went_round_ || last_ == std::numeric_limits<int>::max();
      last_ = last_ == std::numeric_limits<int>::max() ? 1 : last_ + 1;
    } while (things_.contains(last_));
    things_.emplace(last_, std::move(thing));
    return last_;
  }
  void put(int number, Thing thing) {
    const std::lock_guard guard(mutex_);
    things_.insert_or_assign(number, std::move(thing));
  }
  std::optional<Thing> get(int number) {
    const std::lock_guard guard(mutex_);
    const auto found = things_.find(number);
    return found == things_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<Thing> take(int number) {
    const std::lock_guard guard(mutex_);
    const auto found = things_.find(number);
    if (found == things_.end()) return std::nullopt;
    std::optional<Thing> thing(std::move(found->second));
    things_.erase(found);
    return thing;
  }
  /// Whether the number was ever issued, even if its object is gone.
  bool was_given(int number) {
    const std::lock_guard guard(mutex_);
    return number > 0 && (number <= last_ || went_round_);
  }
  /// Calls `visit(number, thing)` for all, under the lock.
  template <class Visit>
  void for_each(Visit visit) {
    const std::lock_guard guard(mutex_);
    for (auto& [number, thing] : things_) visit(number, thing);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<int, Thing> things_;
  int last_ = 0;
  bool went_round_ = false;
};

/// Directory and name of a path; the directory of a bare name is ".".
struct SplitPath {
  std::string directory, name;
};
[[nodiscard]] SplitPath split_path(const std::string& path);

/// Waits for the transfers of global arrays that are being destroyed, whose memory is about to be freed.
void finish_transfers_of_destroyed_arrays() noexcept;

}  // namespace outcore::compat
