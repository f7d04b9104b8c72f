// A nonblocking request as Python sees it: with the memory it works on.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "abandoned.hpp"
#include "buffer_arg.hpp"
#include "outcore/device/request.hpp"

namespace outcore::python {

/// A request together with what it uses, the objects whose memory it moves and the file, which stay alive and
/// in place until it is complete, also when the request object goes before that. All members need the GIL;
/// waiting releases it.
template <class Request>
class Held {
 public:
  Held(Request request, std::vector<BufferArg> buffers, nanobind::object owner = {})
      : request_(std::move(request)), uses_{std::move(buffers), std::move(owner)} {
    Abandoned<Request, Uses>::release_done();
  }
  ~Held() {
    if (!request_.done()) Abandoned<Request, Uses>::add(std::move(request_), std::move(uses_));
  }
  Held(Held&&) noexcept = default;
  Held& operator=(Held&&) = delete;

  std::int64_t wait() {
    {
      Request copy = request_;  // another thread may be waiting, too
      nanobind::gil_scoped_release released;
      try {
        copy.wait();
      } catch (const std::exception&) {  // thrown again below, with the GIL held
      }
    }
    uses_ = {};
    return request_.wait();
  }
  bool test() {
    if (!request_.done()) return false;
    wait();
    return true;
  }
  [[nodiscard]] bool done() const noexcept { return request_.done(); }
  [[nodiscard]] const Request& request() const noexcept { return request_; }

  static void finish_at_exit() { Abandoned<Request, Uses>::finish_at_exit(); }

 private:
  struct Uses {
    std::vector<BufferArg> buffers;
    nanobind::object owner;
  };
  Request request_;
  Uses uses_;
};

using HeldRequest = Held<device::Request>;

/// Starts a request on buffers. A lock of the file may be held by a thread that waits for the disk, so the
/// GIL is released.
template <class Start>
auto start_held(std::vector<BufferArg> buffers, nanobind::object owner, Start start) {
  decltype(start()) request;
  {
    nanobind::gil_scoped_release released;
    request = start();
  }
  return Held<decltype(request)>(std::move(request), std::move(buffers), std::move(owner));
}

template <class Request>
void wait_all_held(const std::vector<Held<Request>*>& held) {
  std::vector<Request> requests;
  for (const auto* one : held) requests.push_back(one->request());
  nanobind::gil_scoped_release released;
  wait_all(std::span(requests));
}

template <class Request>
void bind_held(nanobind::module_& module, const char* name, const char* doc, const char* wait_doc) {
  nanobind::class_<Held<Request>>(module, name, doc)
      .def("wait", &Held<Request>::wait, wait_doc)
      .def("test", &Held<Request>::test,
           "True once complete; never blocks. Raises OutcoreError if the operation failed.")
      .def_prop_ro("done", &Held<Request>::done, "True once complete or failed; never raises.");
  module.def("wait_all", &wait_all_held<Request>, nanobind::arg("requests"),
             "Wait for all requests, then raise the error of the first failed one, if any.");
  Held<Request>::finish_at_exit();
}

[[nodiscard]] inline std::vector<BufferArg> as_list(BufferArg buffer) {
  std::vector<BufferArg> list;
  list.push_back(std::move(buffer));
  return list;
}

/// One buffer, or a list or tuple of them (scatter/gather).
[[nodiscard]] std::vector<BufferArg> buffer_list(nanobind::handle argument, Access access);

}  // namespace outcore::python
