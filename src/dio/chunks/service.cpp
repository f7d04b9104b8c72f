#include "dio/chunks/service.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/accumulate_strided.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::dio {
namespace {

[[noreturn]] void refuse(int errno_value, const std::string& detail) {
  throw Error(errno_value, {.attempted = "serve a section of a disk array", .detail = detail});
}

/// Elements of overlaps, one after another.
class Packed {
 public:
  Packed(std::byte* next, std::size_t element_bytes) : next_(next), element_bytes_(element_bytes) {}
  /// Only read from: a Strided has one type of pointer for both directions.
  Packed(std::span<const std::byte> from, std::size_t element_bytes)
      : Packed(const_cast<std::byte*>(from.data()), element_bytes) {}
  Strided operator()(const ChunkOverlap& overlap) {
    const Strided memory{next_, row_major(overlap.count, element_bytes_)};
    next_ += overlap.elements() * static_cast<std::int64_t>(element_bytes_);
    return memory;
  }

 private:
  std::byte* next_;
  std::size_t element_bytes_;
};

ChunkCall parsed(std::span<const std::byte> header) {
  ChunkCall asked;
  if (header.size() != sizeof asked) refuse(EINVAL, "a header of another size");
  std::memcpy(&asked, header.data(), sizeof asked);
  if (asked.rank < 1 || asked.rank > max_rank) refuse(EINVAL, "dimensions: " + std::to_string(asked.rank));
  return asked;
}

/// The requested section, which may be invalid.
Slices checked(const ChunkCall& asked, const ChunkGrid& grid) {
  const Slices slices = asked.slices();
  if (!slices.fits(grid.shape()))
    refuse(EINVAL, "box " + slices.box.text() + " in steps of " + slices.step.text() +
                       " of an array of shape " + grid.shape().text());
  return slices;
}

}  // namespace

// ---- calls

ChunkCall::ChunkCall(std::uint64_t array_number, int which, ChunkOperation what, const Slices& slices)
    : array(array_number),
      component(which),
      operation(what),
      rank(static_cast<std::uint8_t>(slices.box.rank())) {
  std::ranges::copy(slices.box.begin.values(), begin.begin());
  std::ranges::copy(slices.box.end.values(), end.begin());
  std::ranges::copy(slices.step.values(), step.begin());
}

Slices ChunkCall::slices() const {
  const auto numbers = [&](const auto& all) {
    return Extents(std::span(all).first(static_cast<std::size_t>(rank)));
  };
  return {numbers(begin), numbers(end), numbers(step)};
}

ChunkService::ChunkService(World& world)
    : world_(world), staging_(std::make_shared<Staging>(world.budget())) {
  world.together("start the threads of disk arrays", 0, [&] {
    jobs_.begin();
    (void)device::default_engine();
  });
  procedure_ = world.register_procedure(
      "outcore: chunks of disk arrays",
      [arrays = arrays_, &budget = world.budget()](Call call) { serve(*arrays, budget, std::move(call)); },
      {.may_block = true});
}

ChunkService::~ChunkService() {
  jobs_.end();
  const std::lock_guard lock(arrays_->mutex);
  arrays_->stores.clear();
}

std::shared_ptr<void> ChunkService::add(std::uint64_t array, std::shared_ptr<ChunkStore> store) {
  struct Known {
    std::shared_ptr<Arrays> arrays;
    std::uint64_t array;
    ~Known() {
      std::shared_ptr<ChunkStore> last;  // destroyed without the lock
      const std::lock_guard lock(arrays->mutex);
      if (const auto found = arrays->stores.find(array); found != arrays->stores.end()) {
        last = std::move(found->second);
        arrays->stores.erase(found);
      }
    }
  };
  auto known = std::make_shared<Known>(arrays_, array);
  const std::lock_guard lock(arrays_->mutex);
  arrays_->stores[array] = std::move(store);
  return known;
}

std::uint64_t ChunkService::foreign_number() {
  return (static_cast<std::uint64_t>(world_.rank()) + 1) << 40 | ++next_foreign_;
}

Request ChunkService::call(int process, const ChunkCall& header, std::span<const std::byte> payload,
                           CallOptions options) {
  return world_.call(process, procedure_, std::as_bytes(std::span(&header, 1)), payload, std::move(options));
}

void ChunkService::serve(Arrays& arrays, Budget& budget, Call call) {
  const ChunkCall asked = parsed(call.header());
  std::shared_ptr<ChunkStore> store;
  {
    const std::lock_guard lock(arrays.mutex);
    if (const auto found = arrays.stores.find(asked.array); found != arrays.stores.end())
      store = found->second;
  }
  if (!store) refuse(EBADF, "the array was closed there");
  const Slices slices = checked(asked, store->grid());
  const std::size_t element_bytes = store->grid().element_bytes();
  std::int64_t bytes = 0;
  for_each_overlap(store->grid(), asked.component, slices, [&](const ChunkOverlap& overlap) {
    bytes += overlap.elements() * static_cast<std::int64_t>(element_bytes);
  });
  if (const bool changes =
          asked.operation == ChunkOperation::put || asked.operation == ChunkOperation::accumulate;
      static_cast<std::int64_t>(call.payload().size()) != (changes ? bytes : 0))
    refuse(EINVAL, std::to_string(call.payload().size()) + " bytes came for " + std::to_string(bytes));
  switch (asked.operation) {
    case ChunkOperation::get: {
      if (bytes > call.max_reply_bytes()) refuse(EMSGSIZE, std::to_string(bytes) + " bytes were asked for");
      if (const auto room = call.room(); static_cast<std::int64_t>(room.size()) >= bytes && bytes > 0) {
        store->get(asked.component, slices, Packed(room.data(), element_bytes));
        call.answer(room.first(static_cast<std::size_t>(bytes)));
        return;
      }
      auto reply = std::make_shared<BudgetedBuffer>(budget, bytes, "a section that another process reads");
      store->get(asked.component, slices, Packed(reply->span().data(), element_bytes));
      call.answer(reply->span(), reply);
      return;
    }
    case ChunkOperation::put:
      store->put(asked.component, slices, Packed(call.payload(), element_bytes));
      break;
    case ChunkOperation::accumulate:
      check_accumulated(store->type(), "disk array");
      store->accumulate(asked.component, slices, Packed(call.payload(), element_bytes), asked.alpha.data());
      break;
    case ChunkOperation::prefetch:
      store->prefetch(asked.component, slices);
      break;
    default:
      refuse(EINVAL, "an unknown operation");
  }
  call.answer();
}

}  // namespace outcore::dio
