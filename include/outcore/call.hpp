// GPC: global procedure calls. A process calls a registered procedure at another one, which needs not look.
// Source: the Global Procedure Calls of GPC-IO, and the handlers of active messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "outcore/api.h"
#include "outcore/error.hpp"
#include "outcore/origin.hpp"

namespace outcore {

namespace gpc {
struct Served;  // a call at its target
}  // namespace gpc

inline constexpr std::size_t max_call_header_bytes = 3072;
inline constexpr std::int64_t max_call_bytes = std::int64_t{1} << 30;  ///< of a payload, and of a reply

/// A call that this process has been asked to serve. It ends with `answer` or `fail`, once, now or later, by
/// any thread. One that nobody holds any more and that has not ended fails with Error(ECANCELED) at its
/// caller. Copies share it.
class OUTCORE_API Call {
 public:
  explicit Call(std::shared_ptr<gpc::Served> served) noexcept : served_(std::move(served), "answer a call") {}

  [[nodiscard]] int caller() const noexcept;
  /// Until the call ends. The payload may lie in memory of the caller's program.
  [[nodiscard]] std::span<const std::byte> header() const noexcept;
  [[nodiscard]] std::span<const std::byte> payload() const noexcept;
  /// Whether the payload is there, if not unchanged, as long as this object, though the call has ended.
  [[nodiscard]] bool payload_stays() const noexcept;
  [[nodiscard]] std::int64_t max_reply_bytes() const noexcept;  ///< what the caller has room for

  /// Where a reply may be put so that it need not be sent: memory of max_reply_bytes() that the caller sees.
  /// Empty if there is none. Answer with what lies at its begin.
  [[nodiscard]] std::span<std::byte> room() const noexcept;
  /// The caller wants the reply just there, so that it is not copied at all.
  [[nodiscard]] bool room_is_final() const noexcept;

  /// The reply, which is copied. Longer than the caller has room for: it gets Error(EMSGSIZE) instead.
  void answer(std::span<const std::byte> reply = {});
  /// Without a copy: `keeper` holds the memory of the reply, and is let go when it has been sent.
  void answer(std::span<const std::byte> reply, std::shared_ptr<const void> keeper);
  /// The caller's request fails with this error, which names the rank of this process.
  void fail(const Error& error);

 private:
  std::shared_ptr<gpc::Served> take();
  Owned<std::shared_ptr<gpc::Served>> served_;
};

/// What a process does when it is called. An exception becomes the error of the call.
using Procedure = std::function<void(Call)>;

/// Throws Error(EDEADLK) in a procedure that was not registered as one that may block: there the wait would
/// never end. For those who wait for several calls, and want to begin with none.
OUTCORE_API void check_may_wait_for_calls();

/// While one lives the calling thread waits for what other processes, or other threads of this one, have to
/// do. In a procedure that may block it gives its place to other calls meanwhile, as it does while it waits
/// for a call, so that what it waits for can be served here. Of several in one thread the outermost counts.
/// Throws as check_may_wait_for_calls does.
class OUTCORE_API WaitsForOthers {
 public:
  WaitsForOthers();
  ~WaitsForOthers();
  WaitsForOthers(const WaitsForOthers&) = delete;
  WaitsForOthers& operator=(const WaitsForOthers&) = delete;
};

struct CallOptions {
  /// Where the reply goes; it must stay until the request is done. Empty: memory is taken when it comes.
  std::span<std::byte> reply = {};
  /// Room for the reply if `reply` is empty.
  std::int64_t max_reply_bytes = 0;
  /// Called once, before the request is done: with the reply, or with an error. By the thread that serves,
  /// or one that waits: it must neither block nor throw. To scatter a reply, say, without help of the caller.
  std::function<void(std::span<std::byte> reply, const Error* error)> then = {};
};

struct ProcedureOptions {
  /// It may block, for I/O: run by worker threads of the service, several calls at once and in any order.
  /// Else by the thread that serves, one at a time, those of one caller in the order they were made; then it
  /// must take no longer than some ten microseconds, and not wait for anything that needs the service.
  bool may_block = false;
};

}  // namespace outcore
