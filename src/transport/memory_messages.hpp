// Messages between the threads of one process.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "outcore/extend/messages.hpp"
#include "transport/mapping.hpp"

namespace outcore::transport {

/// The boxes, one for each rank of a group, in which messages wait until they are taken.
class PostOffice {
 public:
  struct Packet {
    int from;
    std::vector<std::byte> bytes;
  };
  /// One side of a bulk transfer that waits for the other.
  struct Side {
    int peer;
    std::uint32_t tag;
    std::uint64_t token;
    std::byte* data;
    std::size_t size_bytes;
  };
  struct Box {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Packet> packets;
    std::deque<std::uint64_t> done;       // tokens of transfers that have ended
    std::vector<Side> offered, expected;  // to this rank, by others; by this rank
    bool woken = false, closed = false;
    Mapping common{Messages::common_bytes};
  };

  explicit PostOffice(int ranks) : boxes_(static_cast<std::size_t>(ranks)) {}
  [[nodiscard]] Box& box(int rank) { return boxes_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<Box> boxes_;
};

[[nodiscard]] std::unique_ptr<Messages> memory_messages(std::shared_ptr<PostOffice> office, int rank);

}  // namespace outcore::transport
