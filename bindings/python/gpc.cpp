// Procedure calls in Python.
#include <nanobind/ndarray.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "buffer_arg.hpp"
#include "gate.hpp"
#include "outcore/call.hpp"
#include "outcore/world.hpp"
#include "request.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using ConstByteArray = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>, nb::device::cpu>;

ConstByteArray as_array(std::span<const std::byte> bytes, nb::handle owner) {
  return ConstByteArray(reinterpret_cast<const std::uint8_t*>(bytes.data()), {bytes.size()}, owner);
}

/// The payload of a call as an array; the call, or a copy of the payload, lives as long as any view of it.
auto payload_of(const Call& call) {
  if (call.payload_stays()) {
    nb::capsule owner(new Call(call), [](void* kept) noexcept { delete static_cast<Call*>(kept); });
    return as_array(call.payload(), owner);
  }
  using Bytes = std::vector<std::byte>;
  auto* const copy = new Bytes(call.payload().begin(), call.payload().end());
  nb::capsule owner(copy, [](void* kept) noexcept { delete static_cast<Bytes*>(kept); });
  return as_array(std::span<const std::byte>(*copy), owner);
}

/// Serves a call by a Python function that returns (fields of an error, reply). It is run by a worker thread:
/// it may wait for the GIL.
void serve(const nb::callable& function, Call call) {
  const nb::gil_scoped_acquire locked;
  const auto header = call.header();
  const nb::tuple result =
      nb::cast<nb::tuple>(function(call.caller(), nb::bytes(header.data(), header.size()), payload_of(call)));
  try {
    throw_fields(nb::cast<nb::tuple>(result[0]));
  } catch (const Error& failure) {
    const nb::gil_scoped_release released;
    call.fail(failure);
    return;
  }
  if (result[1].is_none()) {
    const nb::gil_scoped_release released;
    call.answer();
    return;
  }
  const BufferArg reply(result[1], Access::read);
  const nb::gil_scoped_release released;
  call.answer(reply.span());
}

/// The function is released while the GIL is held, in whatever thread.
std::uint32_t register_procedure(World& world, const std::string& name, nb::callable function) {
  const std::shared_ptr<nb::callable> kept(new nb::callable(std::move(function)), [](nb::callable* last) {
    const nb::gil_scoped_acquire locked;
    delete last;
  });
  const nb::gil_scoped_release released;
  return world.register_procedure(name, [kept](Call call) { serve(*kept, std::move(call)); },
                                  {.may_block = true});
}

HeldRequest call(World& world, int process, std::uint32_t procedure, const nb::bytes& header,
                 nb::handle payload, nb::handle reply, std::int64_t max_reply_bytes) {
  Uses uses;
  auto& buffers = uses.buffers;
  CallOptions options;
  std::span<const std::byte> data;
  if (!payload.is_none()) data = buffers.emplace_back(payload, Access::read).span();
  if (!reply.is_none())
    options.reply = buffers.emplace_back(reply, Access::write).span();
  else
    options.max_reply_bytes = max_reply_bytes;
  const std::span head(static_cast<const std::byte*>(header.data()), header.size());
  return start_held(std::move(uses), Result::reply,
                    [&] { return world.call(process, procedure, head, data, std::move(options)); });
}

}  // namespace

void bind_gpc(nb::module_& module) {
  nb::class_<World> world = nb::borrow<nb::class_<World>>(module.attr("World"));
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  world
      .def("register_procedure", &register_procedure, "name"_a, "serve"_a,
           "Native part of World.register. Collective.")
      .def("unregister_procedure", &World::unregister_procedure, unlocked, "procedure"_a,
           "Native part of World.unregister. Collective.")
      .def("procedure", &World::procedure, "name"_a, "The number of a registered procedure.")
      .def("call_procedure", &call, "process"_a, "procedure"_a, "header"_a, "payload"_a.none(),
           "reply"_a.none(), "max_reply_bytes"_a, nb::keep_alive<0, 1>(), "Native part of World.call.");
}

}  // namespace outcore::python
