#include "request.hpp"

#include <nanobind/stl/vector.h>

#include <utility>

#include "abandoned.hpp"
#include "bindings.hpp"

namespace nb = nanobind;

namespace outcore::python {
namespace {

std::vector<device::Request> unwrap(const std::vector<HeldRequest*>& held) {
  std::vector<device::Request> requests;
  requests.reserve(held.size());
  for (const HeldRequest* one : held) requests.push_back(one->request());
  return requests;
}

void wait_all(const std::vector<HeldRequest*>& held) {
  std::vector<device::Request> requests = unwrap(held);
  nb::gil_scoped_release released;
  device::wait_all(requests);
}

std::size_t wait_any(const std::vector<HeldRequest*>& held) {
  std::vector<device::Request> requests = unwrap(held);
  nb::gil_scoped_release released;
  return device::wait_any(requests);
}

}  // namespace

HeldRequest::HeldRequest(device::Request request, std::vector<BufferArg> buffers)
    : request_(std::move(request)), buffers_(std::move(buffers)) {
  Abandoned<device::Request>::release_done();
}

HeldRequest::~HeldRequest() {
  if (!buffers_.empty() && !request_.done())
    Abandoned<device::Request>::add(std::move(request_), std::move(buffers_));
}

std::int64_t HeldRequest::wait() {
  {
    nb::gil_scoped_release released;
    while (!request_.done()) {
      device::Request copy = request_;  // another thread may be waiting, too
      try {
        copy.wait();
      } catch (const std::exception&) {  // thrown again below, with the GIL held
      }
    }
  }
  release_if_done();
  return request_.wait();
}

bool HeldRequest::test() {
  release_if_done();
  return request_.test();
}

void HeldRequest::release_if_done() {
  if (request_.done()) buffers_.clear();
}

std::vector<BufferArg> buffer_list(nb::handle argument, Access access) {
  std::vector<BufferArg> list;
  if (nb::isinstance<nb::list>(argument) || nb::isinstance<nb::tuple>(argument))
    for (nb::handle item : nb::borrow<nb::sequence>(argument)) list.emplace_back(item, access);
  else
    list.emplace_back(argument, access);
  return list;
}

void bind_request(nb::module_& module) {
  nb::class_<HeldRequest>(
      module, "Request",
      "A nonblocking read or write under way. It keeps its buffer alive until it is complete.")
      .def("wait", &HeldRequest::wait,
           "Block until complete and return the bytes moved: fewer than asked for only at the end of a "
           "file.\n\n"
           "Raises OutcoreError if the operation failed. Other Python threads run meanwhile.")
      .def("test", &HeldRequest::test,
           "True once complete; never blocks. Raises OutcoreError if the operation failed.")
      .def_prop_ro("done", &HeldRequest::done, "True once complete or failed; never raises.");
  module.def("wait_all", &wait_all, nb::arg("requests"),
             "Wait for all requests, then raise the error of the first failed one, if any.");
  module.def(
      "wait_any", &wait_any, nb::arg("requests"),
      "Wait until one request is complete and return its position; its error is left for its own wait().");
  Abandoned<device::Request>::finish_at_exit();
}

}  // namespace outcore::python
