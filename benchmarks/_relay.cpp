// Holds each Ethernet frame between two networks for a time, as `tc netem delay` does, which not every kernel
// has: `_relay NEAR FAR MICROSECONDS`. Makes the TAP devices NEAR and FAR, says "ready", and carries frames
// between them until its standard input closes. The kernel gives and takes segments of up to 64 kB whole.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t most_bytes = (64 << 10) + 256;  // of a segment with its headers
constexpr std::size_t most_frames = 4096;  // under way in a direction; others are lost, as on a full link

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

int tap(const char* name) {
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  must(device >= 0, "/dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  must(ioctl(device, TUNSETIFF, &request) == 0, name);
  must(ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) == 0, "TUNSETOFFLOAD");
  return device;
}

struct Frame {
  Clock::time_point due;
  std::unique_ptr<char[]> data;
  std::size_t bytes;
};

class Direction {
 public:
  Direction(int from, int to, Clock::duration delay) : from_(from), to_(to), delay_(delay) {}

  void take() {
    for (;;) {
      auto data = fresh();
      const ssize_t bytes = read(from_, data.get(), most_bytes);
      if (bytes <= 0 || frames_.size() == most_frames) {
        free_.push_back(std::move(data));
        if (bytes > 0) continue;
        must(errno == EAGAIN || errno == EINTR || errno == EIO, "read");  // EIO: the device is down
        return;
      }
      frames_.push_back({Clock::now() + delay_, std::move(data), std::size_t(bytes)});
    }
  }

  void give() {
    while (!frames_.empty() && frames_.front().due <= Clock::now()) {
      Frame& first = frames_.front();
      if (write(to_, first.data.get(), first.bytes) < 0)
        must(errno == EAGAIN || errno == EIO || errno == EINVAL, "write");  // a frame that is lost
      free_.push_back(std::move(first.data));
      frames_.pop_front();
    }
  }

  [[nodiscard]] std::optional<Clock::time_point> due() const {
    return frames_.empty() ? std::nullopt : std::optional(frames_.front().due);
  }

 private:
  std::unique_ptr<char[]> fresh() {
    if (free_.empty()) return std::make_unique_for_overwrite<char[]>(most_bytes);
    auto found = std::move(free_.back());
    free_.pop_back();
    return found;
  }

  int from_, to_;
  Clock::duration delay_;
  std::deque<Frame> frames_;
  std::vector<std::unique_ptr<char[]>> free_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  prctl(PR_SET_TIMERSLACK, 1UL);  // nanosecond; 50 us otherwise
  const int near = tap(arguments[1]), far = tap(arguments[2]);
  const auto delay = std::chrono::microseconds(std::atol(arguments[3]));
  std::array directions{Direction(near, far, delay), Direction(far, near, delay)};
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    std::optional<Clock::time_point> next;
    for (const Direction& each : directions)
      if (const auto due = each.due(); due && (!next || *due < *next)) next = due;
    timespec left{};
    if (next) {
      const auto wait =
          std::chrono::nanoseconds(std::max(*next - Clock::now(), Clock::duration::zero())).count();
      left = {.tv_sec = wait / 1'000'000'000, .tv_nsec = wait % 1'000'000'000};
    }
    std::array<pollfd, 3> devices{pollfd{near, POLLIN, 0}, pollfd{far, POLLIN, 0},
                                  pollfd{STDIN_FILENO, POLLIN, 0}};
    must(ppoll(devices.data(), devices.size(), next ? &left : nullptr, nullptr) >= 0 || errno == EINTR,
         "ppoll");
    if (devices[2].revents != 0) return 0;
    for (Direction& each : directions) {
      each.take();
      each.give();
    }
  }
}
