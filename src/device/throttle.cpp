#include "device/throttle.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/uninterrupted.hpp"
#include "device/descriptor.hpp"
#include "outcore/error.hpp"
#include "outcore/trace.hpp"

namespace outcore::device {
namespace {

constexpr unsigned max_disks = 64;
constexpr std::uint64_t clock_magic = 0x314b434f4c43434f;  // "OCCLOCK1"
constexpr std::uint64_t max_backlog_ns = 600'000'000'000;

using Units = std::initializer_list<std::pair<std::string_view, double>>;
const Units byte_units{{"", 1},     {"B", 1},         {"kB", 1e3},      {"KB", 1e3},     {"MB", 1e6},
                       {"GB", 1e9}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
const Units time_units{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

Error wrong(const std::string& text, const std::string& detail) {
  return Error(EINVAL, {.attempted = "throttled storage", .detail = "'" + text + "': " + detail});
}

double quantity(const std::string& item, std::string_view value, const Units& units) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(value.data() + value.size() - end));
  for (const auto& [name, factor] : units)
    if (error == std::errc() && unit == name && std::isfinite(number) && number >= 0) return number * factor;
  throw wrong(item, "not a number with a unit it knows");
}

std::int64_t whole(const std::string& item, double value, double min, double max) {
  if (value < min || value > max || value != std::floor(value))
    throw wrong(item, "not a whole number from " + std::to_string(static_cast<std::int64_t>(min)) + " to " +
                          std::to_string(static_cast<std::int64_t>(max)));
  return static_cast<std::int64_t>(value);
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

/// Bytes that lie before offset `at` on one of the disks.
std::int64_t bytes_before(std::int64_t at, unsigned disk, const Throttle& t) {
  const std::int64_t round = t.stripe_bytes * t.disks;
  const std::int64_t into = at % round - t.stripe_bytes * disk;
  return at / round * t.stripe_bytes + std::clamp<std::int64_t>(into, 0, t.stripe_bytes);
}

}  // namespace

Throttle Throttle::parse(const std::string& text) {
  Throttle result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.compare(at, 6, "clock=") == 0 ? text.size() : text.find(',', at);
    end = std::min(end, text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (key == "bandwidth")
      result.bandwidth_bytes_per_s = quantity(item, value, byte_units);
    else if (key == "latency")
      result.latency_ns = static_cast<std::int64_t>(quantity(item, value, time_units));
    else if (key == "disks")
      result.disks = static_cast<unsigned>(whole(item, quantity(item, value, {{"", 1}}), 1, max_disks));
    else if (key == "stripe")
      result.stripe_bytes = whole(item, quantity(item, value, byte_units), 512, 1 << 30);
    else if (key == "clock")
      result.clock = value;
    else
      throw wrong(item, "expected bandwidth=, latency=, disks=, stripe= or clock=");
  }
  if (!(result.bandwidth_bytes_per_s >= 1)) throw wrong(text, "a bandwidth in bytes a second is needed");
  if (result.latency_ns > 3'600'000'000'000) throw wrong(text, "the latency is longer than an hour");
  return result;
}

std::string Throttle::describe() const {
  std::string text = disks == 1 ? "a disk" : std::to_string(disks) + " disks";
  text += " of " + number(bandwidth_bytes_per_s / 1e6) + " MB/s";
  if (disks > 1) text += ", striped by " + std::to_string(stripe_bytes) + " bytes";
  text += ", latency " + number(static_cast<double>(latency_ns) / 1e6) + " ms";
  return text + (clock.empty() ? ", of each process" : ", shared");
}

struct DiskClock::Shared {
  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> busy_until[max_disks];
};

DiskClock::DiskClock(const Throttle& throttle) : throttle_(throttle), own_(throttle.disks) {
  busy_until_ = own_.data();
  if (!throttle_.clock.empty()) share();
}

DiskClock::~DiskClock() {
  if (shared_) munmap(shared_, sizeof(Shared));
}

void DiskClock::share() {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const auto failure = [this](int error, const char* detail = "") {
    return Error(
        error,
        {.attempted = "use the clock of a throttled storage", .path = throttle_.clock, .detail = detail});
  };
  const Descriptor file = open_at(AT_FDCWD, throttle_.clock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (!file) throw failure(errno);
  struct stat about{};
  if (fstat(file.get(), &about) != 0) throw failure(errno);
  if (about.st_size != 0 && about.st_size != sizeof(Shared)) throw failure(EINVAL, "it is another file");
  if (uninterrupted([&] { return ftruncate(file.get(), sizeof(Shared)); }) != 0) throw failure(errno);
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) throw failure(errno);
  shared_ = static_cast<Shared*>(memory);
  busy_until_ = shared_->busy_until;
  std::uint64_t found = 0;
  const bool ours = shared_->magic.compare_exchange_strong(found, clock_magic) || found == clock_magic;
  const std::uint64_t most = trace::now_ns() + max_backlog_ns;
  const bool stale = ours && std::any_of(busy_until_, busy_until_ + throttle_.disks,
                                         [most](const auto& until) { return until.load() > most; });
  if (ours && !stale) return;
  munmap(std::exchange(shared_, nullptr), sizeof(Shared));
  throw failure(EINVAL, stale ? "it is of an earlier boot of this machine; remove it" : "it is another file");
}

std::uint64_t DiskClock::book(std::uint64_t arrival_ns, std::int64_t offset,
                              std::int64_t size_bytes) noexcept {
  std::uint64_t end = arrival_ns;
  for (unsigned disk = 0; disk < throttle_.disks && size_bytes > 0; ++disk) {
    const std::int64_t part =
        bytes_before(offset + size_bytes, disk, throttle_) - bytes_before(offset, disk, throttle_);
    if (part == 0) continue;
    const auto takes =
        static_cast<std::uint64_t>(static_cast<double>(part) * 1e9 / throttle_.bandwidth_bytes_per_s);
    std::uint64_t busy = busy_until_[disk].load(std::memory_order_relaxed), until = 0;
    do {
      until = std::max(busy, arrival_ns) + takes;
    } while (!busy_until_[disk].compare_exchange_weak(busy, until, std::memory_order_relaxed));
    end = std::max(end, until);
  }
  return end + static_cast<std::uint64_t>(throttle_.latency_ns);
}

}  // namespace outcore::device
