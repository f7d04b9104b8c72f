#include "transport/memory_messages.hpp"

#include <algorithm>
#include <utility>

namespace outcore::transport {
namespace {

class MemoryMessages final : public Messages {
 public:
  MemoryMessages(std::shared_ptr<PostOffice> office, int rank) : office_(std::move(office)), rank_(rank) {}

  ~MemoryMessages() override {
    auto& box = office_->box(rank_);
    const std::lock_guard guard(box.mutex);
    box.closed = true;
  }

  void send(int to, Packet packet) override {
    std::vector<std::byte> bytes(size_of(packet));
    gather(packet, bytes.data());
    auto& box = office_->box(to);
    {
      const std::lock_guard guard(box.mutex);
      box.packets.push_back({rank_, std::move(bytes)});
    }
    box.changed.notify_one();
  }

  void send_bulk(int to, std::uint32_t tag, std::span<const std::byte> data, std::uint64_t token) override {
    // Only read from: a side has one type of pointer for both directions.
    meet(to, &PostOffice::Box::expected, &PostOffice::Box::offered, rank_,
         {rank_, tag, token, const_cast<std::byte*>(data.data()), data.size()});
  }

  void receive_bulk(int from, std::uint32_t tag, std::span<std::byte> into, std::uint64_t token) override {
    meet(rank_, &PostOffice::Box::offered, &PostOffice::Box::expected, from,
         {from, tag, token, into.data(), into.size()});
  }

  std::span<std::byte> common(int process) const noexcept override {
    return {office_->box(process).common.data(), common_bytes};
  }

  bool poll(Receiver& receiver, int packets) override {
    std::vector<PostOffice::Packet> come;
    std::deque<std::uint64_t> done;
    {
      auto& box = office_->box(rank_);
      const std::lock_guard guard(box.mutex);
      while (!box.packets.empty() && packets-- > 0) {
        come.push_back(std::move(box.packets.front()));
        box.packets.pop_front();
      }
      done.swap(box.done);
    }
    for (const auto& packet : come) receiver.packet(packet.from, packet.bytes);
    for (const std::uint64_t token : done) receiver.bulk_done(token, 0);
    return !come.empty() || !done.empty();
  }

  void wait(std::chrono::microseconds timeout) override {
    auto& box = office_->box(rank_);
    std::unique_lock lock(box.mutex);
    box.changed.wait_for(lock, timeout,
                         [&] { return box.woken || !box.packets.empty() || !box.done.empty(); });
    box.woken = false;
  }

  void wake() override {
    auto& box = office_->box(rank_);
    {
      const std::lock_guard guard(box.mutex);
      box.woken = true;
    }
    box.changed.notify_one();
  }

  /// A thread that has ended while others send to it has failed.
  bool alive(int process) override {
    auto& box = office_->box(process);
    const std::lock_guard guard(box.mutex);
    return !box.closed;
  }

  bool is_told() const noexcept override { return true; }

 private:
  using Sides = std::vector<PostOffice::Side> PostOffice::Box::*;

  /// Both sides of a transfer meet at the box of the receiver; the side that comes second copies.
  void meet(int receiver, Sides others, Sides own, int sender, const PostOffice::Side& mine) {
    auto& box = office_->box(receiver);
    PostOffice::Side other{};
    {
      const std::lock_guard guard(box.mutex);
      auto& waiting = box.*others;
      const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const PostOffice::Side& each) {
        return each.peer == sender && each.tag == mine.tag;
      });
      if (found == waiting.end()) {
        (box.*own).push_back(mine);
        return;
      }
      other = *found;
      waiting.erase(found);
    }
    const bool receives = own == &PostOffice::Box::expected;
    const PostOffice::Side &from = receives ? other : mine, &to = receives ? mine : other;
    std::copy_n(from.data, std::min(to.size_bytes, from.size_bytes), to.data);
    finish(receiver, to.token);
    finish(sender, from.token);
  }

  void finish(int rank, std::uint64_t token) {
    auto& box = office_->box(rank);
    {
      const std::lock_guard guard(box.mutex);
      box.done.push_back(token);
    }
    box.changed.notify_one();
  }

  std::shared_ptr<PostOffice> office_;
  int rank_;
};

}  // namespace

std::unique_ptr<Messages> memory_messages(std::shared_ptr<PostOffice> office, int rank) {
  return std::make_unique<MemoryMessages>(std::move(office), rank);
}

}  // namespace outcore::transport
