// GPC: global procedure calls. A process calls a registered procedure at another process, which need not
// poll. Source: the Global Procedure Calls of GPC-IO, and the handlers of active messages.
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
inline constexpr std::int64_t max_call_bytes = std::int64_t{1} << 30;  ///< the longest payload or reply

/// A call that this process serves. Any thread ends it with `answer` or `fail`, once, now or later. If the
/// last copy is destroyed before that, the call fails with Error(ECANCELED) at its caller. Copies share the
/// call.
class OUTCORE_API Call {
 public:
  explicit Call(std::shared_ptr<gpc::Served> served) noexcept : served_(std::move(served), "answer a call") {}

  [[nodiscard]] int caller() const noexcept;
  /// Header and payload are valid until the call ends. The payload may lie in memory of the caller's program.
  [[nodiscard]] std::span<const std::byte> header() const noexcept;
  [[nodiscard]] std::span<const std::byte> payload() const noexcept;
  /// Whether the payload can be read as long as this object lives, even after the call has ended; its bytes
  /// may change then.
  [[nodiscard]] bool payload_stays() const noexcept;
  [[nodiscard]] std::int64_t max_reply_bytes() const noexcept;  ///< the caller's room for a reply

  /// Memory of max_reply_bytes() that the caller sees: a reply that lies at its beginning when it is passed
  /// to `answer` need not be sent. Empty if there is no such memory.
  [[nodiscard]] std::span<std::byte> room() const noexcept;
  /// Whether room() is where the caller wants the reply, so that it is not copied at all.
  [[nodiscard]] bool room_is_final() const noexcept;

  /// Sends the reply, which is copied. If it is longer than the caller has room for, the caller gets
  /// Error(EMSGSIZE) instead.
  void answer(std::span<const std::byte> reply = {});
  /// Sends the reply without a copy: `keeper` owns its memory, and is released when the reply has been sent.
  void answer(std::span<const std::byte> reply, std::shared_ptr<const void> keeper);
  /// Makes the caller's request fail with this error, which names the rank of this process.
  void fail(const Error& error);

 private:
  std::shared_ptr<gpc::Served> take();
  Owned<std::shared_ptr<gpc::Served>> served_;
};

/// The function that serves a call. An exception that it throws becomes the error of the call.
using Procedure = std::function<void(Call)>;

/// Throws Error(EDEADLK) inside a procedure that was registered without `may_block`: a wait for calls would
/// never end there. Callers that make several calls check this before the first one.
OUTCORE_API void check_may_wait_for_calls();

/// Marks, while it lives, that the calling thread waits for other processes or other threads of this one.
/// Inside a procedure that may block, the thread gives its place to other calls meanwhile, as in a wait for a
/// call, so that this process can serve what the thread waits for. If a thread has several, the outermost
/// counts. Throws as check_may_wait_for_calls does.
class OUTCORE_API WaitsForOthers {
 public:
  WaitsForOthers();
  ~WaitsForOthers();
  WaitsForOthers(const WaitsForOthers&) = delete;
  WaitsForOthers& operator=(const WaitsForOthers&) = delete;
};

struct CallOptions {
  /// Memory for the reply; it must stay until the request is done. Empty: allocated when the reply arrives.
  std::span<std::byte> reply = {};
  /// Room for the reply if `reply` is empty.
  std::int64_t max_reply_bytes = 0;
  /// Called once, before the request is done, with the reply or with an error. It runs in the service's
  /// thread or in one that waits, and must neither block nor throw. Example: it scatters the reply without
  /// help of the caller.
  std::function<void(std::span<std::byte> reply, const Error* error)> then = {};
};

struct ProcedureOptions {
  /// Whether the procedure may block, for I/O say. If so, worker threads of the service run several calls at
  /// once, in any order. If not, the service's thread runs one call at a time, the calls of one caller in
  /// their order; the procedure must then take no longer than some ten microseconds, and must not wait for
  /// anything that needs the service.
  bool may_block = false;
};

}  // namespace outcore
