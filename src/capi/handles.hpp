// The common parts of the C interfaces: handles, return codes and the text of the last error.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/file.hpp"
#include "outcore/error.hpp"
#include "outcore/outcore.h"
#include "outcore/placement.hpp"
#include "outcore/world.hpp"

namespace outcore::capi {

/// A table of objects that C knows by numbers, which are never used twice.
template <class Number, class Thing>
class Table {
 public:
  Number add(Thing thing) {
    const std::lock_guard guard(mutex_);
    if (last_ == std::numeric_limits<Number>::max()) throw Error(EMFILE, {.attempted = "number a handle"});
    things_.emplace(++last_, std::move(thing));
    return last_;
  }
  Thing get(Number number, int errno_value, const char* what) {
    const std::lock_guard guard(mutex_);
    return find(number, errno_value, what)->second;
  }
  Thing take(Number number, int errno_value, const char* what) {
    const std::lock_guard guard(mutex_);
    const auto found = find(number, errno_value, what);
    Thing thing = std::move(found->second);
    things_.erase(found);
    taken_.fetch_add(1, std::memory_order_release);
    return thing;
  }

  /// The objects for which `chosen(thing)` is true, in the order of their numbers.
  template <class Chosen>
  std::vector<Thing> all(Chosen chosen) {
    const std::lock_guard guard(mutex_);
    std::map<Number, Thing> found;
    for (const auto& [number, thing] : things_)
      if (chosen(thing)) found.emplace(number, thing);
    std::vector<Thing> things;
    for (auto& [number, thing] : found) things.push_back(std::move(thing));
    return things;
  }

  /// The object that this thread got last, kept for its next calls, which then take no lock. The object may
  /// outlive its number, until this thread gets another one or ends. One for each thread and type of table.
  const Thing& get_again(Number number, int errno_value, const char* what) {
    thread_local struct {
      Table* of = nullptr;
      Number number = 0;
      std::uint64_t taken = 0;
      Thing thing{};
    } last;
    const std::uint64_t taken = taken_.load(std::memory_order_acquire);
    if (last.of != this || last.number != number || last.taken != taken) {
      last.of = nullptr;  // if it is not there
      last.thing = get(number, errno_value, what);
      last.of = this;
      last.number = number;
      last.taken = taken;
    }
    return last.thing;
  }

 private:
  auto find(Number number, int errno_value, const char* what) {
    const auto found = things_.find(number);
    if (found != things_.end()) return found;
    const char* why = number > 0 && number <= last_ ? "it has ended" : "no such handle was given out";
    throw Error(errno_value,
                {.attempted = std::string("use ") + what + " " + std::to_string(number), .detail = why});
  }

  std::mutex mutex_;
  std::unordered_map<Number, Thing> things_;
  std::atomic<std::uint64_t> taken_{0};  ///< how many
  Number last_ = 0;
};

/// Remembers the text of a failure for this thread, and returns the code.
int failed(int code, const char* text) noexcept;
/// The text of the last failure of this thread; empty if there was none.
[[nodiscard]] const char* last_error() noexcept;
/// The text of a code: that of the last failure of this thread if it had the same code.
[[nodiscard]] const char* text_of(int code) noexcept;

/// Runs a call and turns its exception into a code and a text. The body returns a code.
template <class Body>
int guarded(Body body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    return failed(error.errno_value(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(ENOMEM, "out of memory");
  } catch (const std::exception& error) {
    return failed(EIO, error.what());
  }
}

[[noreturn]] void invalid(const char* attempted, const char* why);

/// The untyped part of options_of, for any structure that begins with its size.
void copy_options(const void* given, std::size_t least, const char* attempted, void* options,
                  std::size_t size);

/// The options that a caller passes, or the defaults. A structure of an older program is shorter: the missing
/// fields are zero. A structure of a newer program is longer: its unknown fields must be zero, else
/// Error(EINVAL).
template <class Options>
[[nodiscard]] Options options_of(const Options* given, const char* attempted) {
  Options options{};
  if (given) copy_options(given, sizeof given->size, attempted, &options, sizeof options);
  options.size = sizeof options;
  return options;
}

/// The memory of a request; throws Error(EINVAL) for NULL and for negative sizes.
[[nodiscard]] std::span<std::byte> memory(void* buffer, std::int64_t bytes);
[[nodiscard]] std::span<const std::byte> memory(const void* buffer, std::int64_t bytes);

[[nodiscard]] std::shared_ptr<World> world_of(int world);  ///< Error(EBADF) if there is none

/// One of OC_PLACEMENT_*, one of OC_PAGE_CACHE_*.
[[nodiscard]] Placement placement_of(int placement, const char* attempted);
[[nodiscard]] device::PageCache page_cache_of(int page_cache);

/// Stores the facts of a file system; either place may be NULL.
void report(const device::FileSystem& system, std::int64_t* free_bytes, char* type, std::size_t type_size);

}  // namespace outcore::capi
