// Messages: small packets and bulk data between two processes, under the procedure calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "outcore/api.h"

namespace outcore::transport {

/// A packet to be sent: its parts, one behind the other. Only for arguments.
using Packet = std::initializer_list<std::span<const std::byte>>;

[[nodiscard]] inline std::size_t size_of(Packet packet) noexcept {
  std::size_t size = 0;
  for (const auto part : packet) size += part.size();
  return size;
}

inline void gather(Packet packet, std::byte* into) noexcept {
  for (const auto part : packet) into = std::copy(part.begin(), part.end(), into);
}

/// The part of a back-end by which processes can call one another. It keeps no table of processes.
///
/// Packets between two processes arrive in the order sent, once each, while both sides poll. Bulk data
/// travels apart from packets: a send meets the receive of the same tag, whichever comes first, and the data
/// moves from memory to memory, without a copy where that is possible. Between two processes, in one
/// direction, only one transfer at a time may use a tag.
///
/// `send`, `send_bulk`, `receive_bulk` and `poll` are called by one thread at a time (the caller locks);
/// `wait` by one thread, without that lock; `wake` by any. None but `wait` sleeps. Throws Error if the
/// transport has failed.
class OUTCORE_API Messages {
 public:
  static constexpr std::size_t max_packet_bytes = 4096;
  static constexpr std::uint32_t max_tag = (1U << 14) - 1;
  /// Number of slots for packets that have come, whatever the number of senders (96 KiB in all).
  static constexpr int packets_at_once = 24;
  static constexpr std::size_t common_bytes = 4 << 20;

  /// What `poll` calls. Neither may call `poll`.
  struct Receiver {
    virtual ~Receiver() = default;
    /// A packet has come; its memory is valid during this call only. May send.
    virtual void packet(int from, std::span<const std::byte> packet) = 0;
    /// A bulk transfer has ended; `errno_value` is 0 if it went well.
    virtual void bulk_done(std::uint64_t token, int errno_value) = 0;
  };

  virtual ~Messages() = default;  ///< collective; all that was sent must have been received
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// Sends at most max_packet_bytes, which are copied. `to` may be this process.
  virtual void send(int to, Packet packet) = 0;
  /// The memory must stay until bulk_done(token).
  virtual void send_bulk(int to, std::uint32_t tag, std::span<const std::byte> data, std::uint64_t token) = 0;
  /// `into` has exactly as many bytes as are sent.
  virtual void receive_bulk(int from, std::uint32_t tag, std::span<std::byte> into, std::uint64_t token) = 0;

  /// Memory of `process`, which may be this one, that both processes see: data there need not be sent. It has
  /// common_bytes, is aligned to pages and initially zero. Empty if the two processes share no memory, and
  /// then at both. Any thread; valid as long as this object.
  [[nodiscard]] virtual std::span<std::byte> common(int process) const noexcept = 0;

  /// Delivers what has come, but no more than `packets` packets. Returns whether there was anything.
  virtual bool poll(Receiver& receiver, int packets = packets_at_once) = 0;

  /// Sleeps until something may have come, or `wake` is called, or for `timeout`. A back-end that is not told
  /// of arrivals naps for less (`timeout` is then the longest nap).
  virtual void wait(std::chrono::microseconds timeout) = 0;
  virtual void wake() = 0;
  /// False once it is known that a process has died. Called as `poll`.
  [[nodiscard]] virtual bool alive(int process) = 0;
  /// True if `wait` returns at once when something comes, and when bulk data can make progress, so that
  /// `timeout` need not be short. May change with the transfers under way.
  [[nodiscard]] virtual bool is_told() const noexcept = 0;

 protected:
  Messages() = default;
};

}  // namespace outcore::transport

// A skeleton to copy: one process, which sends to itself.
#ifdef OUTCORE_SKELETONS

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace outcore::transport {

class SkeletonMessages final : public Messages {
 public:
  void send(int /*to*/, Packet packet) override {
    std::vector<std::byte> bytes(size_of(packet));
    gather(packet, bytes.data());
    {
      const std::lock_guard lock(mutex_);
      packets_.push_back(std::move(bytes));
    }
    changed_.notify_one();
  }
  void send_bulk(int /*to*/, std::uint32_t tag, std::span<const std::byte> data,
                 std::uint64_t token) override {
    sent_.push_back({tag, data, token});
    meet();
  }
  void receive_bulk(int /*from*/, std::uint32_t tag, std::span<std::byte> into,
                    std::uint64_t token) override {
    awaited_.push_back({tag, into, token});
    meet();
  }

  /// None: all data has to be sent.
  [[nodiscard]] std::span<std::byte> common(int /*process*/) const noexcept override { return {}; }

  bool poll(Receiver& receiver, int packets) override {
    // What a receiver sends meanwhile comes with the next poll.
    std::vector<std::vector<std::byte>> come;
    std::vector<std::uint64_t> done;
    {
      const std::lock_guard lock(mutex_);
      for (; packets > 0 && !packets_.empty(); --packets, packets_.pop_front())
        come.push_back(std::move(packets_.front()));
      done.swap(done_);
    }
    for (const std::vector<std::byte>& packet : come) receiver.packet(0, packet);
    for (const std::uint64_t token : done) receiver.bulk_done(token, 0);
    return !come.empty() || !done.empty();
  }

  void wait(std::chrono::microseconds timeout) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return woken_ || !packets_.empty() || !done_.empty(); });
    woken_ = false;
  }
  void wake() override {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  }
  [[nodiscard]] bool alive(int /*process*/) override { return true; }
  [[nodiscard]] bool is_told() const noexcept override { return true; }

 private:
  template <class Memory>
  struct Bulk {
    std::uint32_t tag;
    Memory memory;
    std::uint64_t token;
  };

  /// Whichever side of a transfer comes second copies.
  void meet() {
    for (auto from = sent_.begin(); from != sent_.end(); ++from) {
      const auto to = std::find_if(awaited_.begin(), awaited_.end(),
                                   [&](const auto& each) { return each.tag == from->tag; });
      if (to == awaited_.end()) continue;
      std::copy(from->memory.begin(), from->memory.end(), to->memory.begin());
      {
        const std::lock_guard lock(mutex_);
        done_.insert(done_.end(), {to->token, from->token});
      }
      changed_.notify_one();
      awaited_.erase(to);
      sent_.erase(from);
      return;
    }
  }

  std::vector<Bulk<std::span<const std::byte>>> sent_;
  std::vector<Bulk<std::span<std::byte>>> awaited_;
  std::mutex mutex_;  // guards what `wait` reads, in another thread
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> packets_;
  std::vector<std::uint64_t> done_;
  bool woken_ = false;
};

}  // namespace outcore::transport

#endif
