// The C interface of procedure calls.

#include "outcore/call.hpp"

#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/handles.hpp"
#include "capi/requests.hpp"
#include "outcore/outcore.h"
#include "outcore/world.hpp"

namespace {

using namespace outcore::capi;
using outcore::Call;
using outcore::Error;

/// Runs a procedure of C, and answers with the reply that it has written, or fails with the code that it
/// returned.
void serve(oc_procedure function, void* context, Call call) {
  std::vector<std::byte> own;
  const auto room_bytes = static_cast<std::size_t>(call.max_reply_bytes());
  auto room = call.room();
  if (room.size() < room_bytes) {
    own.resize(room_bytes);
    room = own;
  }
  oc_call_arguments arguments{.size = sizeof arguments,
                              .caller = call.caller(),
                              .header = call.header().data(),
                              .header_bytes = static_cast<std::int64_t>(call.header().size()),
                              .payload = call.payload().data(),
                              .payload_bytes = static_cast<std::int64_t>(call.payload().size()),
                              .reply = room.data(),
                              .max_reply_bytes = call.max_reply_bytes(),
                              .reply_bytes = 0};
  const int code = function(context, &arguments);
  if (code != OC_OK) throw Error(code, {.attempted = "serve a call", .detail = "the procedure failed"});
  if (arguments.reply_bytes < 0 || arguments.reply_bytes > arguments.max_reply_bytes)
    throw Error(EMSGSIZE, {.attempted = "answer a call",
                           .size_bytes = arguments.reply_bytes,
                           .detail = "the caller has room for " + std::to_string(arguments.max_reply_bytes) +
                                     " bytes"});
  call.answer(room.first(static_cast<std::size_t>(arguments.reply_bytes)));
}

std::uint32_t procedure_of(std::int64_t procedure) {
  if (procedure < 0 || procedure > std::numeric_limits<std::uint32_t>::max())
    throw Error(ENOENT, {.attempted = "use procedure " + std::to_string(procedure),
                         .detail = "no such number was given out"});
  return static_cast<std::uint32_t>(procedure);
}

}  // namespace

extern "C" {

int oc_call_register(int world, const char* name, oc_procedure function, void* context, int may_block,
                     int64_t* procedure) {
  return guarded([&] {
    auto its_world = world_of(world);
    outcore::Procedure served;  // without one all processes get an error
    if (function && procedure) served = [=](Call call) { serve(function, context, std::move(call)); };
    const auto number =
        its_world->register_procedure(name ? name : "", std::move(served), {.may_block = may_block != 0});
    *procedure = number;
    return OC_OK;
  });
}

int oc_call_unregister(int world, int64_t procedure) {
  return guarded([&] {
    world_of(world)->unregister_procedure(procedure_of(procedure));
    return OC_OK;
  });
}

int oc_call_find(int world, const char* name, int64_t* procedure) {
  return guarded([&] {
    if (!name || !procedure) invalid("find a procedure", "name or procedure is NULL");
    *procedure = world_of(world)->procedure(name);
    return OC_OK;
  });
}

int oc_call_async(int world, int process, int64_t procedure, const void* header, int64_t header_bytes,
                  const void* payload, int64_t payload_bytes, void* reply, int64_t max_reply_bytes,
                  int64_t* request) {
  return guarded([&] {
    if (!request) invalid("call", "request is NULL");
    auto its_world = world_of(world);
    auto its_request =
        its_world->call(process, procedure_of(procedure), memory(header, header_bytes),
                        memory(payload, payload_bytes), {.reply = memory(reply, max_reply_bytes)});
    *request = number_of({std::move(its_request), std::move(its_world)});
    return OC_OK;
  });
}

}  // extern "C"
