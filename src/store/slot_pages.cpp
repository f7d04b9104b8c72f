#include "store/slot_pages.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "outcore/error.hpp"

namespace outcore::store {
namespace {

constexpr std::int64_t usual_page_bytes = 16 << 10;

}  // namespace

SlotPages::SlotPages(const Geometry& geometry)
    : slots_(geometry.slots), blocks_(geometry.blocks()), rooms_(geometry.codec.codec != Codec::none) {
  const std::int64_t slot_bytes = 4 * blocks_ + 6 + (rooms_ ? 4 : 0);
  const auto fitting = static_cast<std::uint64_t>(std::max<std::int64_t>(usual_page_bytes / slot_bytes, 1));
  page_slots_ = static_cast<std::int64_t>(std::bit_floor(fitting));
  page_bytes_ = page_slots_ * slot_bytes + static_cast<std::int64_t>(sizeof(Page));
  const std::int64_t pages = (slots_ + page_slots_ - 1) / page_slots_;
  while (pages > std::int64_t{1} << (levels_ * node_bits)) ++levels_;
}

SlotPages::~SlotPages() {
  free(root_.load(), levels_);
  if (account_) account_(-taken_bytes_);
}

void SlotPages::free(void* at, int level) noexcept {
  if (at == nullptr) return;
  if (level == 0) {
    delete static_cast<Page*>(at);
    return;
  }
  auto* node = static_cast<Node*>(at);
  for (const auto& below : node->below) free(below.load(), level - 1);
  delete node;
}

void SlotPages::account_to(Account account) {
  const std::lock_guard lock(mutex_);
  assert(!account_);
  if (account) account(taken_bytes_);
  account_ = std::move(account);
}

SlotPages::Page* SlotPages::find(std::int64_t slot) const noexcept {
  assert(slot >= 0 && slot < slots_);
  const std::int64_t number = slot / page_slots_;
  void* at = root_.load(std::memory_order_acquire);
  for (int level = levels_; level > 0 && at != nullptr; --level) {
    const auto place =
        static_cast<std::size_t>(number >> ((level - 1) * node_bits)) % (std::size_t{1} << node_bits);
    at = static_cast<Node*>(at)->below[place].load(std::memory_order_acquire);
  }
  return static_cast<Page*>(at);
}

template <class Made>
Made* SlotPages::take(std::int64_t bytes, const std::function<Made*()>& made) {
  if (account_) account_(bytes);
  try {
    Made* const taken = made();
    taken_bytes_ += bytes;
    return taken;
  } catch (const std::bad_alloc&) {
    if (account_) account_(-bytes);
    throw Error(ENOMEM, {.attempted = "table of a component", .size_bytes = bytes});
  }
}

SlotPages::Page& SlotPages::make(std::int64_t slot) {
  if (Page* page = find(slot)) return *page;
  const std::lock_guard lock(mutex_);
  const std::int64_t number = slot / page_slots_;
  std::atomic<void*>* at = &root_;
  for (int level = levels_; level > 0; --level) {
    void* node = at->load();
    if (node == nullptr) {
      node = take<Node>(sizeof(Node), [] { return new Node; });
      at->store(node, std::memory_order_release);
    }
    const auto place =
        static_cast<std::size_t>(number >> ((level - 1) * node_bits)) % (std::size_t{1} << node_bits);
    at = &static_cast<Node*>(node)->below[place];
  }
  if (void* there = at->load()) return *static_cast<Page*>(there);  // another thread was faster
  Page* page = take<Page>(page_bytes_, [&] {
    const auto slots = static_cast<std::size_t>(page_slots_);
    auto made = std::make_unique<Page>();
    made->stored.resize(slots);
    made->state.resize(slots);
    made->checksums.resize(slots * static_cast<std::size_t>(blocks_));
    if (rooms_) made->room.resize(slots);
    return made.release();
  });
  at->store(page, std::memory_order_release);
  return *page;
}

}  // namespace outcore::store
