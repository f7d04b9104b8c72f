#include "request.hpp"

#include <utility>

#include "bindings.hpp"

namespace nb = nanobind;

namespace outcore::python {
namespace {

std::size_t wait_any(const std::vector<HeldRequest*>& held) {
  std::vector<device::Request> requests;
  for (const HeldRequest* one : held) requests.push_back(one->request());
  nb::gil_scoped_release released;
  return device::wait_any(requests);
}

}  // namespace

std::vector<BufferArg> buffer_list(nb::handle argument, Access access) {
  std::vector<BufferArg> list;
  if (nb::isinstance<nb::list>(argument) || nb::isinstance<nb::tuple>(argument))
    for (nb::handle item : nb::borrow<nb::sequence>(argument)) list.emplace_back(item, access);
  else
    list.emplace_back(argument, access);
  return list;
}

void bind_request(nb::module_& module) {
  bind_held<device::Request>(
      module, "Request",
      "A nonblocking read or write under way. It keeps its buffer alive until it is complete.",
      "Block until complete and return the bytes moved: fewer than asked for only at the end of a "
      "file.\n\n"
      "Raises OutcoreError if the operation failed. Other Python threads run meanwhile.");
  module.def(
      "wait_any", &wait_any, nb::arg("requests"),
      "Wait until one request is complete and return its position; its error is left for its own wait().");
}

}  // namespace outcore::python
