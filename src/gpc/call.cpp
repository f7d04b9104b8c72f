#include "outcore/call.hpp"

#include <cerrno>
#include <utility>

#include "gpc/service.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore {

gpc::Served::~Served() {
  if (service && !ended) service->drop(*this);
}

int Call::caller() const noexcept {
  return served_.get()->caller;
}
std::span<const std::byte> Call::header() const noexcept {
  return served_.get()->header.span();
}
std::span<const std::byte> Call::payload() const noexcept {
  return served_.get()->payload.span();
}
bool Call::payload_stays() const noexcept {
  return !served_.get()->seen_payload || !transport::is_foreign(served_.get()->seen_payload.get());
}
std::int64_t Call::max_reply_bytes() const noexcept {
  return served_.get()->max_reply_bytes;
}

std::span<std::byte> Call::room() const noexcept {
  return served_.get()->room;
}
bool Call::room_is_final() const noexcept {
  return served_.get()->seen_room != nullptr;
}

std::shared_ptr<gpc::Served> Call::take() {
  if (!served_) throw Error(EBADF, {.attempted = "answer a call", .detail = "it was answered"});
  served_.check();
  return std::exchange(served_, {}).pointer();
}

void Call::answer(std::span<const std::byte> reply) {
  answer(reply, nullptr);
}

void Call::answer(std::span<const std::byte> reply, std::shared_ptr<const void> keeper) {
  const auto served = take();
  served->service->answer(*served, reply, std::move(keeper));
}

void Call::fail(const Error& error) {
  const auto served = take();
  served->service->fail(*served, error);
}

void check_may_wait_for_calls() {
  gpc::Service::check_may_wait();
}

WaitsForOthers::WaitsForOthers() {
  check_may_wait_for_calls();
  gpc::Service::stand_back(true);
}

WaitsForOthers::~WaitsForOthers() {
  gpc::Service::stand_back(false);
}

void gpc::Pending::finish() {
  if (!done()) service->wait(*this);
}

std::exception_ptr gpc::Pending::error() const {
  return failure ? std::make_exception_ptr(Error(*failure)) : nullptr;
}

bool gpc::Pending::help() noexcept {
  if (!done()) service->step();
  return false;
}

void gpc::Pending::check_may_wait() const {
  Service::check_may_wait();
}

void gpc::Pending::begin_wait() {
  check_may_wait();
  Service::stand_back(true);
}

void gpc::Pending::end_wait(std::uint64_t /*waited_ns*/) noexcept {
  Service::stand_back(false);
}

}  // namespace outcore
