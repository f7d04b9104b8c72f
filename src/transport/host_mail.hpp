// Messages between the processes of a host, through memory that they share.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/sibling.hpp"
#include "outcore/extend/messages.hpp"
#include "outcore/extend/transport.hpp"
#include "transport/mapping.hpp"

namespace outcore::transport {

class HostWakeUp;

/// A letter in a mailbox: a packet, or a notice of a bulk transfer, whose data the receiver fetches itself.
/// It is small, because it travels from the cache of one core to that of another.
struct Letter {
  enum class Kind : std::uint32_t { packet, offer, taken };
  Kind kind = Kind::packet;
  std::int32_t from = 0;
  std::uint32_t size_bytes = 0;  ///< of the bytes that follow: the packet, an Offer or a Taken
};

struct Offer {
  std::uint32_t tag = 0;
  std::uint64_t token = 0;  ///< token of the transfer at the sender
  const std::byte* data = nullptr;
  std::uint64_t data_bytes = 0;
  SharedLocation location = nowhere;  ///< place of the data, if it lies in memory that processes share
};

struct Taken {
  std::uint64_t token = 0;       ///< that of the offer
  std::int32_t errno_value = 0;  ///< 0: it went well
};

/// A ring of letters, for one reader and any number of writers, in zeroed memory that they share.
class Mailbox {
 public:
  /// False if the mailbox is full. Any process and thread. `letter.size_bytes` is that of the packet.
  [[nodiscard]] bool put(const Letter& letter, Packet packet) noexcept;

  struct alignas(64) Cell {
    std::atomic<std::uint64_t> turn;  // 2 n: free for the n-th time; 2 n + 1: filled for the n-th time
    Letter letter;
    std::array<std::byte, Messages::max_packet_bytes> packet;
  };
  /// The next letter, or null. `read` counts the letters that were taken. Only threads of the owner call it.
  /// One of them takes letters; the others learn only whether there is one.
  [[nodiscard]] Cell* look(std::uint64_t read) noexcept;
  static void free(Cell& cell) noexcept;

  std::atomic<std::int64_t> word;  ///< address of a word of its owner, which others try to read

 private:
  static constexpr std::uint64_t cells = 64;
  alignas(64) std::atomic<std::uint64_t> written_;
  alignas(64) std::array<Cell, cells> cells_;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Packets go to the mailbox of the receiver. For bulk data only the address is sent: the receiver copies the
/// data, from memory that both have mapped (such as one-sided memory on one node), or else from the memory of
/// the sender (process_vm_readv), if the system allows it, which is tried at the beginning. The former takes
/// a third of the time of the latter, in which the system looks at each page. One thread at a time calls the
/// methods, except `is_busy`, `wants_room` and `has_come`. Measured: [M29].
class OUTCORE_SIBLING HostMail {
  static constexpr std::size_t page_bytes = 4096;

 public:
  /// Beside the word of each process.
  static constexpr std::size_t memory_bytes = sizeof(Mailbox) + page_bytes + Messages::common_bytes;

  /// Collective; `wake_up` must have memory_bytes beside each word. OUTCORE_FETCH=no: bulk data is not
  /// fetched.
  HostMail(Transport& transport, HostWakeUp& wake_up);

  [[nodiscard]] bool reaches(int process) const noexcept { return box(process) != nullptr; }
  [[nodiscard]] std::span<std::byte> common(int process) const noexcept;  ///< see Messages
  [[nodiscard]] bool fetches() const noexcept { return fetches_; }

  void send(int to, Packet packet);
  void send_bulk(int to, std::uint32_t tag, std::span<const std::byte> data, std::uint64_t token);
  void receive_bulk(int from, std::uint32_t tag, std::span<std::byte> into, std::uint64_t token);
  /// As Messages::poll; subtracts the delivered packets from `packets`.
  bool poll(Messages::Receiver& receiver, int& packets);

  /// Waits until all letters have found room, which receivers make by polling.
  void put_all();

  /// Whether there is work to do for which no wake-up comes.
  [[nodiscard]] bool is_busy() const noexcept { return fetches_some_.load(std::memory_order_relaxed); }
  /// Whether letters wait for room in a mailbox. No wake-up comes when there is room.
  [[nodiscard]] bool wants_room() const noexcept { return wants_room_.load(std::memory_order_relaxed); }
  /// Whether there is a letter. A process that puts one in after this check sees what this thread wrote
  /// (seq_cst) before.
  [[nodiscard]] bool has_come() const noexcept;

 private:
  struct Fetch {  // bulk data that this process copies
    int from;
    Offer offer;
    std::span<std::byte> into;
    std::uint64_t token;
    std::size_t done_bytes = 0;
  };
  struct Expected {
    std::span<std::byte> into;
    std::uint64_t token;
  };
  struct Unsent {
    Letter::Kind kind;
    std::vector<std::byte> packet;
  };
  using Key = std::pair<int, std::uint32_t>;  // sender, tag

  [[nodiscard]] Mailbox* box(int process) const noexcept;
  [[nodiscard]] bool try_fetching(Transport& transport) const;
  void put(int to, Letter::Kind kind, Packet packet);
  [[nodiscard]] bool try_put(int to, Letter::Kind kind, Packet packet);
  bool put_unsent();
  bool take(Messages::Receiver& receiver, int& packets);
  bool fetch_some(Messages::Receiver& receiver);

  int rank_;
  HostWakeUp& wake_up_;
  bool fetches_ = false;
  std::atomic<std::uint64_t> read_{0};                  // letters of the own box
  std::unordered_map<int, std::deque<Unsent>> unsent_;  // letters to boxes that were full
  std::map<Key, Offer> offered_;                        // offers that nobody has asked for yet
  std::map<Key, Expected> expected_;                    // receives of data that nobody has offered yet
  std::deque<Fetch> fetching_;
  std::atomic<bool> fetches_some_{false}, wants_room_{false};
  std::chrono::steady_clock::time_point looked_{};  // last check that processes with full boxes are alive
};

}  // namespace outcore::transport
