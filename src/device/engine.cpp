// One operation, in the calling thread, by a plain system call.
#include "outcore/extend/engine.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

namespace outcore::device {
namespace {

std::int64_t read_some(const Operation& o) {
  const int count = static_cast<int>(o.list_count);
  if (o.cached_only) return preadv2(o.fd, o.list, count, o.offset, RWF_NOWAIT);
  return count == 1 ? pread(o.fd, o.list->iov_base, o.list->iov_len, o.offset)
                    : preadv(o.fd, o.list, count, o.offset);
}

std::int64_t write_some(const Operation& o) {
  const int count = static_cast<int>(o.list_count);
  return count == 1 ? pwrite(o.fd, o.list->iov_base, o.list->iov_len, o.offset)
                    : pwritev(o.fd, o.list, count, o.offset);
}

/// cachestat(2), Linux 6.5; not in the C library yet.
std::int64_t resident_bytes(const Operation& o) {
  struct {
    std::uint64_t offset, length;
  } range{static_cast<std::uint64_t>(o.offset), static_cast<std::uint64_t>(o.size_bytes)};
  struct {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } pages{};
  if (syscall(SYS_cachestat, o.fd, &range, &pages, 0) != 0) return -1;
  if (pages.dirty + pages.writeback > 0) return o.size_bytes;
  static const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);
  return std::min(o.size_bytes, static_cast<std::int64_t>(pages.cached) * page_bytes);
}

/// By default the kernel lets a thread oversleep by 50 us, its timer slack.
std::int64_t pause_for(std::int64_t nanoseconds) {
  struct Slack {
    const int before = prctl(PR_GET_TIMERSLACK);
    Slack() { prctl(PR_SET_TIMERSLACK, 1UL); }
    ~Slack() { prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before)); }
  } const slack;
  timespec rest{.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
  while (nanosleep(&rest, &rest) != 0)
    if (errno != EINTR) return -1;
  return 0;
}

std::int64_t call(const Operation& o) {
  switch (o.kind) {
    case Operation::Kind::read:
      return read_some(o);
    case Operation::Kind::write:
      return write_some(o);
    case Operation::Kind::reserve:
      return fallocate(o.fd, FALLOC_FL_KEEP_SIZE, o.offset, o.size_bytes);
    case Operation::Kind::sync:
      return fdatasync(o.fd);
    case Operation::Kind::resident:
      return resident_bytes(o);
    case Operation::Kind::pause:
      return pause_for(o.size_bytes);
  }
  errno = EINVAL;
  return -1;
}

}  // namespace

std::int64_t Engine::run_plainly(const Operation& operation) noexcept {
  const std::int64_t value = call(operation);
  return value >= 0 ? value : -errno;
}

// ---- bursts

namespace {

thread_local int bursts = 0;           // of this thread, one within another
thread_local Engine* engine_of_burst;  // the engine that has got requests; others are not held back
thread_local Burst::Then then_of_burst = Burst::Then::computes;

}  // namespace

Burst::Burst(Then then) noexcept : before_(std::exchange(then_of_burst, then)) {
  ++bursts;
}

Burst::~Burst() {
  if (--bursts == 0) begin_now();
  then_of_burst = before_;
}

Burst::Then Burst::then() noexcept {
  return then_of_burst;
}

void Burst::begin_now() noexcept {
  if (engine_of_burst) std::exchange(engine_of_burst, nullptr)->end_burst();
}

bool Burst::holds(Engine& engine) noexcept {
  if (bursts == 0 || (engine_of_burst && engine_of_burst != &engine)) return false;
  engine_of_burst = &engine;
  return true;
}

}  // namespace outcore::device
