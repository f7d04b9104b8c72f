// The client cache of a striped file: copies of blocks of components that are out of reach.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/completion.hpp"
#include "dio/stripes/striped_file_state.hpp"
#include "outcore/error.hpp"

namespace outcore::dio {
namespace {

/// Size of a block of a component: that of the smaller reply slots.
constexpr std::int64_t block_bytes = copied_block_bytes;
static_assert(block_bytes <= ReplySlots::small_bytes);

std::int64_t number_of(std::int64_t block, int component, const Stripes& stripes) {
  return block * stripes.components() + component;
}

}  // namespace

void StripedFile::Transfer::Copying::end(const std::exception_ptr& its_failure) {
  if (its_failure) {
    const std::lock_guard guard(mutex);
    if (!failure) failure = its_failure;
  }
  if (left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  left.notify_all();
  announce_completion();
}

/// Reads through copies; ranges that find no room for a copy are requested directly.
void StripedFile::State::start_from_copies(Transfer& request, int component,
                                           std::span<const TransferRange> ranges) {
  if (!request.copying) request.copying = std::make_shared<Transfer::Copying>();
  std::vector<TransferRange> without;
  for (const TransferRange& range : ranges)
    for (std::int64_t done = 0; done < range.size_bytes;) {
      const std::int64_t at = range.offset + done, block = at / block_bytes, from = at % block_bytes;
      const std::int64_t size = std::min(range.size_bytes - done, block_bytes - from);
      std::byte* const memory = range.memory + done;
      done += size;
      const auto ready = [copying = request.copying, memory, from, size](const std::byte* found,
                                                                         const std::exception_ptr& failure) {
        if (!failure) std::memcpy(memory, found + from, static_cast<std::size_t>(size));
        copying->end(failure);
      };
      request.copying->left.fetch_add(1, std::memory_order_relaxed);
      const bool used =
          copies->use(number_of(block, component, stripes), ready,
                      [&](std::span<std::byte> copy, const BlockCopies::Loaded& loaded) {
                        load(request, {{block * block_bytes, block_bytes}, copy.data()}, component, loaded);
                      });
      if (used) continue;
      request.copying->end(nullptr);
      without.push_back({{at, size}, memory});
    }
  if (!without.empty()) start_distant(request, component, without);
}

/// Requests a whole block from its owner.
void StripedFile::State::load(Transfer& request, const TransferRange& block, int component,
                              const BlockCopies::Loaded& loaded) {
  try {
    ask(request, component, {&block, 1}, [loaded](std::span<std::byte>, const Error* error) {
      loaded(error ? std::make_exception_ptr(Error(*error)) : nullptr);
    });
  } catch (...) {
    loaded(std::current_exception());
  }
}

/// Forgets copies of blocks that a write changes. Copies made during the write may be out of date, too, so it
/// forgets them again when the write is complete.
void StripedFile::State::forget_blocks(Transfer& request, int component,
                                       std::span<const TransferRange> ranges) {
  for (const TransferRange& range : ranges) {
    for (std::int64_t block = range.offset / block_bytes; block * block_bytes < range.end(); ++block) {
      request.changed_blocks.push_back(number_of(block, component, stripes));
      copies->forget(request.changed_blocks.back());
    }
  }
}

}  // namespace outcore::dio
