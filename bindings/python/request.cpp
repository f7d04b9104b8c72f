#include "request.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <utility>

#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

/// Operations whose Python object was deleted before they were done, with the objects that they use. An I/O
/// thread must not release these objects, as it must never wait for the GIL. They are released when the next
/// request is made or deleted.
class Abandoned {
 public:
  static void add(Request request, Uses uses) { list().push_back({std::move(request), std::move(uses)}); }
  static void release_done() {
    std::erase_if(list(), [](One& one) { return is_done(one.request); });
  }
  /// Waits at the end of the interpreter, so that nothing writes into memory that is about to be freed.
  static void finish() {
    for (One& one : list()) {
      try {
        one.request.wait();
      } catch (const std::exception&) {  // nobody waited for it
      }
    }
    list().clear();
  }

 private:
  struct One {
    Request request;
    Uses uses;
  };
  static bool is_done(Request& request) {
    if (request.done()) return true;
    try {
      return request.test();
    } catch (const std::exception&) {  // nobody waited for it
      return true;
    }
  }
  static std::vector<One>& list() {
    static auto* const instance = new std::vector<One>;
    return *instance;
  }
};

using ByteArray = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>, nb::device::cpu>;

nb::object as_array(std::span<std::byte> bytes, nb::handle owner) {
  return nb::cast(ByteArray(reinterpret_cast<std::uint8_t*>(bytes.data()), {bytes.size()}, owner));
}

std::vector<Request> requests_of(const std::vector<HeldRequest*>& held) {
  std::vector<Request> requests;
  requests.reserve(held.size());
  for (const HeldRequest* one : held) requests.push_back(one->request());
  return requests;
}

void wait_for_all(const std::vector<HeldRequest*>& held) {
  auto requests = requests_of(held);
  std::exception_ptr failure;
  {
    const nb::gil_scoped_release released;
    try {
      wait_all(requests);
    } catch (...) {  // thrown again below, with the GIL held
      failure = std::current_exception();
    }
  }
  for (HeldRequest* one : held)
    if (one->done()) one->let_go();
  if (failure) std::rethrow_exception(failure);
}

std::size_t wait_for_any(const std::vector<HeldRequest*>& held) {
  auto requests = requests_of(held);
  const nb::gil_scoped_release released;
  return wait_any(requests);
}

}  // namespace

HeldRequest::HeldRequest(Request request, Uses uses, Result result)
    : request_(std::move(request)), uses_(std::move(uses)), result_(result) {
  Abandoned::release_done();
}

HeldRequest::~HeldRequest() {
  if (!request_.done()) Abandoned::add(std::move(request_), std::move(uses_));
}

void HeldRequest::let_go() {
  if (result_ != Result::reply) uses_ = {};
}

nb::object HeldRequest::wait(nb::handle self) {
  auto& held = nb::cast<HeldRequest&>(self);
  Request request = held.request_;  // another thread may be waiting, too
  std::exception_ptr failure;
  std::int64_t bytes = 0;
  {
    const nb::gil_scoped_release released;
    try {
      bytes = request.wait();
    } catch (...) {  // thrown again below, with the GIL held
      failure = std::current_exception();
    }
  }
  if (request.done()) held.let_go();
  if (failure) std::rethrow_exception(failure);
  if (held.result_ == Result::bytes) return nb::cast(bytes);
  if (held.result_ == Result::reply) return as_array(request.reply(), self);
  return held.object_ ? held.object_ : nb::none();
}

bool HeldRequest::test() {
  Request request = request_;
  bool done = false;
  std::exception_ptr failure;
  {
    const nb::gil_scoped_release released;
    try {
      done = request.test();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (done || failure) let_go();
  if (failure) std::rethrow_exception(failure);
  return done;
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
      "A nonblocking operation under way: a read or write of a file, a transfer of an array, a call, a\n"
      "collective transfer. It keeps its memory, and its file or array, alive until it is done, even if\n"
      "the Request is deleted before. It goes on by itself.\n\n"
      "A failed operation raises OutcoreError from each `wait` and `test`. If it changes a file or an\n"
      "array and nobody has waited for it, the next sync, flush or close of that file or array raises\n"
      "its error. Any thread may wait; other Python threads run meanwhile.")
      .def(
          "wait", &HeldRequest::wait, nb::sig("def wait(self) -> typing.Any"),
          "Block until it is done and return its result: for a file the number of bytes moved (fewer than\n"
          "requested only at the end of an exclusive file), for a record its size, for a get the array, for\n"
          "a call the reply (a uint8 array, a part of the buffer given to World.call if there was one),\n"
          "else None.")
      .def("test", &HeldRequest::test, "True once it is done; never blocks.")
      .def_prop_ro("done", &HeldRequest::done, "True once complete or failed; never raises.")
      .def(
          "returning",
          [](nb::object self, nb::object value) {
            nb::cast<HeldRequest&>(self).returning(std::move(value));
            return self;
          },
          nb::sig("def returning(self, value: object) -> Request"), "value"_a,
          "Make `wait` return `value`. Returns self.");
  module.def("wait_all", &wait_for_all, "requests"_a,
             "Wait for all requests, of any kinds, then raise the error of the first failed one, if any.");
  module.def(
      "wait_any", &wait_for_any, "requests"_a,
      "Wait until one request is done, of any kinds, and return its position, the first of several; its\n"
      "own wait() raises its error.");
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { Abandoned::finish(); }));
}

}  // namespace outcore::python
