// Slots for payloads and replies in memory shared by processes.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "device/buffer.hpp"
#include "gpc/call_slots.hpp"
#include "outcore/extend/transport.hpp"
#include "support/check.hpp"

using outcore::gpc::CallSlots;
using outcore::transport::Messages;

namespace {

struct Room {
  outcore::device::Buffer whole{Messages::common_bytes};  // aligned to pages
  std::span<std::byte> memory = whole.span();
  std::shared_ptr<CallSlots> slots = std::make_shared<CallSlots>(memory);
};

}  // namespace

TEST("slots that are taken lie apart, inside the memory, until there is no room") {
  const Room room;
  std::vector<bool> used(64);
  std::vector<CallSlots::Slot> taken;
  const std::vector<std::size_t> units{1, 3, 2, 4};
  for (std::size_t i = 0;; ++i) {
    const std::size_t count = units[i % units.size()];
    auto slot = room.slots->try_take(count * CallSlots::unit_bytes - i % 2);
    if (!slot) break;
    check::is_true(slot.data() == room.memory.data() + slot.offset());
    const std::size_t first = static_cast<std::size_t>(slot.offset()) / CallSlots::unit_bytes;
    for (std::size_t unit = first; unit < first + count; ++unit) {
      check::is_true(!used.at(unit), "taken twice");
      used[unit] = true;
    }
    taken.push_back(std::move(slot));
  }
  check::is_true(std::ranges::count(used, false) < 4, "room was left");
}

TEST("what is let go is taken again, but not what was forfeited") {
  const Room room;
  std::vector<CallSlots::Slot> all(64);
  for (auto& slot : all) slot = room.slots->try_take(1);
  check::is_true(!room.slots->try_take(1));
  const std::int32_t offset = all[17].offset();
  all[17].clear();
  all[17] = room.slots->try_take(1);
  check::equal(all[17].offset(), offset);
  all[17].forfeit();
  check::is_true(!all[17] && !room.slots->try_take(1));
}

TEST("a slot holds what it is filled with, of any size, from anywhere, and nothing else is touched") {
  const Room room;
  std::vector<std::byte> from(300);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
  const auto slot = room.slots->try_take(CallSlots::unit_bytes);
  for (std::size_t size = 0; size < 200; ++size) {
    std::fill_n(room.memory.begin(), 300, std::byte{0});
    const auto part = std::span(from).subspan(size % 20, size);
    slot.fill(part);
    check::is_true(std::equal(part.begin(), part.end(), slot.data()));
    check::is_true(
        std::all_of(slot.data() + size, slot.data() + 300, [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST("there is no slot for nothing, for too much, and without memory") {
  const Room room;
  check::is_true(!room.slots->try_take(0));
  check::is_true(static_cast<bool>(room.slots->try_take(CallSlots::max_bytes)));
  check::is_true(!room.slots->try_take(CallSlots::max_bytes + 1));
  check::is_true(!std::make_shared<CallSlots>(std::span<std::byte>())->try_take(1));
}

TEST("threads never get the same slot") {
  const Room room;
  std::atomic<bool> clash{false};
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20000; ++i) {
        const auto slot = room.slots->try_take(static_cast<std::size_t>(1 + i % 4) * CallSlots::unit_bytes);
        if (!slot) continue;
        *slot.data() = static_cast<std::byte>(t);
        std::this_thread::yield();
        if (*slot.data() != static_cast<std::byte>(t)) clash = true;
      }
    });
  for (auto& thread : threads) thread.join();
  check::is_true(!clash, "a slot was taken twice");
  check::is_true(room.slots->try_take(CallSlots::max_bytes).offset() == 0, "all were let go");
}

TEST_MAIN
