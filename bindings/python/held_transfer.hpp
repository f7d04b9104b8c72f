// Transfers of disk arrays under way, as Python holds them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "abandoned.hpp"
#include "outcore/array/disk_array.hpp"
#include "strided_arg.hpp"

namespace outcore::python {

/// What a transfer of a section uses.
struct HeldArrays {
  nanobind::object array, other;
  StridedArg memory;
};

/// A transfer with what it uses, which stays alive until it is complete, also when the Python object goes
/// before that.
template <class Request, class Held = HeldArrays>
class HeldTransfer {
 public:
  HeldTransfer(Request request, Held held) : request_(std::move(request)), held_(std::move(held)) {
    Abandoned<Request, Held>::release_done();
  }
  ~HeldTransfer() {
    if (!request_.done()) Abandoned<Request, Held>::add(std::move(request_), std::move(held_));
  }
  HeldTransfer(HeldTransfer&&) = delete;

  void wait() {
    {
      const nanobind::gil_scoped_release released;
      request_.wait();
    }
    held_ = {};
  }
  bool test() {
    if (!request_.test()) return false;
    held_ = {};
    return true;
  }
  [[nodiscard]] bool done() const noexcept { return request_.done(); }

 private:
  Request request_;
  Held held_;
};
using HeldCollective = HeldTransfer<CollectiveRequest>;
using HeldSection = HeldTransfer<DiskArrayRequest>;

}  // namespace outcore::python
