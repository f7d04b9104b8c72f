// A nonblocking request as Python sees it: with the memory it works on.
#pragma once

#include <cstdint>
#include <vector>

#include "buffer_arg.hpp"
#include "outcore/device/request.hpp"

namespace outcore::python {

/// A request together with the objects whose memory it uses, which stay alive and in place until it is
/// complete, also when the request object goes before that. All members need the GIL; waiting releases it.
class HeldRequest {
 public:
  HeldRequest(device::Request request, std::vector<BufferArg> buffers);
  ~HeldRequest();
  HeldRequest(HeldRequest&&) noexcept = default;
  HeldRequest& operator=(HeldRequest&&) = delete;

  std::int64_t wait();
  bool test();
  [[nodiscard]] bool done() const noexcept { return request_.done(); }
  [[nodiscard]] const device::Request& request() const noexcept { return request_; }

 private:
  void release_if_done();

  device::Request request_;
  std::vector<BufferArg> buffers_;
};

/// One buffer, or a list or tuple of them (scatter/gather).
[[nodiscard]] std::vector<BufferArg> buffer_list(nanobind::handle argument, Access access);

}  // namespace outcore::python
