// A nonblocking operation as Python sees it: with the memory it works on.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "buffer_arg.hpp"
#include "outcore/request.hpp"
#include "strided_arg.hpp"

namespace outcore::python {

/// What an operation uses, which stays alive and in place until it is done, also when its Python object goes
/// before. Made and destroyed with the GIL held.
struct Uses {
  std::vector<BufferArg> buffers = {};
  StridedArg memory = {};
  nanobind::object owner = {}, other = {};  ///< the file or array, and the one at the other end
};

/// What `wait` returns.
enum class Result : std::uint8_t {
  bytes,   ///< the bytes moved
  object,  ///< what `returning` was given, else None
  reply    ///< of a call, as an array
};

/// outcore.Request. All members need the GIL; waiting releases it. Any thread may wait.
class HeldRequest {
 public:
  HeldRequest(Request request, Uses uses, Result result);
  ~HeldRequest();
  HeldRequest(HeldRequest&&) noexcept = default;
  HeldRequest& operator=(HeldRequest&&) = delete;

  static nanobind::object wait(nanobind::handle self);
  bool test();
  [[nodiscard]] bool done() const noexcept { return request_.done(); }
  void returning(nanobind::object object) { object_ = std::move(object); }

  [[nodiscard]] const Request& request() const noexcept { return request_; }
  /// The memory is free again. For a call its reply stays.
  void let_go();

 private:
  Request request_;
  Uses uses_;
  Result result_;
  nanobind::object object_;
};

/// Begins an operation that uses these. A lock of its file may be held by a thread that waits for the disk,
/// so the GIL is released.
template <class Start>
HeldRequest start_held(Uses uses, Result result, Start start) {
  Request request;
  {
    const nanobind::gil_scoped_release released;
    request = start();
  }
  return {std::move(request), std::move(uses), result};
}

[[nodiscard]] inline Uses using_buffer(BufferArg buffer, nanobind::object owner = {}) {
  Uses uses{.owner = std::move(owner)};
  uses.buffers.push_back(std::move(buffer));
  return uses;
}

/// One buffer, or a list or tuple of them (scatter/gather).
[[nodiscard]] std::vector<BufferArg> buffer_list(nanobind::handle argument, Access access);

}  // namespace outcore::python
