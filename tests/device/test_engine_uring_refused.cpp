// A kernel that refuses requests: this program replaces calls of liburing, and refuses in its place.
#include <dlfcn.h>
#include <liburing.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>

#include "conformance/engine.hpp"

using outcore::Error;
using outcore::device::make_uring_engine;

namespace {

/// The error of call number n; 0 makes the call.
std::atomic<int (*)(int)> refusal = nullptr;
std::atomic<int> calls = 0;

int refused() {
  const auto which = refusal.load();
  const int number = ++calls;
  return which ? which(number) : 0;
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// Reads back by many requests at once what was written.
void write_and_read() {
  const support::Scratch scratch;
  const auto engine = make_uring_engine(4);
  outcore::device::File file(scratch.file(),
                             {.page_cache = outcore::device::PageCache::direct, .engine = engine.get()});
  constexpr std::size_t count = 24, size = 512 << 10;  // of which each is given at once
  const support::Bytes data = support::pattern(count * size, 7);
  support::Bytes back(data.size());
  std::vector<outcore::Request> requests;
  const auto part = [&](auto& bytes, std::size_t i) { return std::span(bytes).subspan(i * size, size); };
  for (std::size_t i = 0; i < count; ++i)
    requests.push_back(file.write_async(part(data, i), static_cast<std::int64_t>(i * size)));
  for (auto& each : requests) check::equal(each.wait(), std::int64_t{size});
  requests.clear();
  for (std::size_t i = 0; i < count; ++i)
    requests.push_back(file.read_async(part(back, i), static_cast<std::int64_t>(i * size)));
  for (auto& each : requests) check::equal(each.wait(), std::int64_t{size});
  support::same(back, data);
}

void with(int (*which)(int)) {
  calls = 0;
  refusal = which;
  try {
    write_and_read();
  } catch (...) {
    refusal = nullptr;
    throw;
  }
  refusal = nullptr;
}

}  // namespace

extern "C" int io_uring_submit(io_uring* ring) {
  const int error = refused();
  return error != 0 ? -error : real<int (*)(io_uring*)>("io_uring_submit")(ring);
}

extern "C" int io_uring_submit_and_wait(io_uring* ring, unsigned wait) {
  const int error = refused();
  return error != 0 ? -error : real<int (*)(io_uring*, unsigned)>("io_uring_submit_and_wait")(ring, wait);
}

TEST("what is refused for a while is given again") {
  with([](int number) { return number % 3 != 0 ? EAGAIN : 0; });
  with([](int number) { return number % 2 != 0 ? EINTR : 0; });
  with([](int number) { return number % 5 != 0 ? EBUSY : 0; });
}

TEST("a kernel that has no memory for long is not asked without a rest") {
  with([](int) { return EAGAIN; });
  check::is_true(calls < 3000);
}

TEST("without a ring that serves, the thread runs the requests itself") {
  with([](int) { return EPERM; });
  check::is_true(calls < 30);
}

TEST("requests that were under way when the ring ceased to serve are complete, too") {
  with([](int number) { return number > 12 ? EPERM : 0; });
  with([](int number) { return number > 31 ? EBADF : 0; });
}

int main(int argc, char** argv) {
  try {
    static_cast<void>(make_uring_engine());
  } catch (const Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 0;
  }
  return check::run(argc, argv);
}
