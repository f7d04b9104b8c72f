#include "outcore/global_array.hpp"

#include <algorithm>
#include <cerrno>
#include <complex>
#include <mutex>
#include <utility>

#include "array/transfers.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "world/gate.hpp"

namespace outcore {
namespace {

std::string describe(ElementType type, const Extents& shape) {
  return "global array " + shape.text() + " of " + std::string(name(type));
}

/// Bytes of the largest part, which is what each process allocates.
std::int64_t part_bytes(const Distribution& distribution, ElementType type) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(distribution.local_elements_max(), std::int64_t(size_bytes(type)), &bytes))
    throw Error(EINVAL, {.attempted = "create a " + describe(type, distribution.shape()),
                         .detail = "its bytes do not fit into 64 bits"});
  return bytes;
}

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

// ---- making one, and its end ----

GlobalArray::GlobalArray(World& world, const Extents& shape, ElementType type)
    : GlobalArray(world, [&](ElementType& its_type) {
        its_type = type;
        return Distribution::regular(shape, world.size());
      }) {}

GlobalArray::GlobalArray(World& world, ElementType type, Distribution distribution)
    : GlobalArray(world, [&](ElementType& its_type) {
        its_type = type;
        return std::move(distribution);
      }) {}

GlobalArray::GlobalArray(World& world, const Make& make) : world_(&world) {
  std::int64_t bytes = 0;
  world.enter("create a global array", [&] {
    distribution_ = make(type_);
    element_bytes_ = size_bytes(type_);
    if (distribution_->processes() > world.size())
      throw Error(EINVAL, {.attempted = "create a " + describe(type_, shape()),
                           .detail = "its distribution is for " + std::to_string(distribution_->processes()) +
                                     " processes, the world has " + std::to_string(world.size())});
    // Whole cache lines: no two arrays share one, and none is without memory.
    bytes = round_up(std::max<std::int64_t>(part_bytes(*distribution_, type_), 1), 64);
    return distribution_->fingerprint() ^ static_cast<std::uint64_t>(type_);
  });
  region_ = world.allocate(bytes, describe(type_, shape()));
  number_ = region_.number();
  transfers_ = std::make_shared<array::Transfers>();
  world.add_user(transfers_);
}

GlobalArray::~GlobalArray() {
  if (!closed() && origin_.here()) transfers_->finish();
}

void GlobalArray::close() {
  if (!origin_.here()) return;
  const std::lock_guard one(transfers_->close_mutex);
  if (closed()) return;
  world_->barrier();
  transfers_->finish();
  transfers_->closed = true;
  region_ = {};  // the memory is used again when all processes are here
  world::agree(world_->transport(), "close a global array", [&] { transfers_->raise_undelivered(); });
}

bool GlobalArray::closed() const noexcept {
  return transfers_->closed;
}

void GlobalArray::sync() {
  check_open();
  world_->enter("sync a global array", [&] {
    transfers_->raise_undelivered();
    world_->flush();
    return number_;
  });
}

// ---- checks ----

void GlobalArray::refuse_closed() const {
  throw Error(EBADF, {.attempted = "use of the " + describe(type_, shape()),
                      .detail = closed() ? "it is closed" : "it, or its world, is being closed"});
}

void GlobalArray::check_open() const {
  if (closed()) refuse_closed();
}

/// A call that uses the memory: the array cannot close before the call ends.
class GlobalArray::Use {
 public:
  explicit Use(const GlobalArray& array) : transfers_(&array.transfers_) {
    if (!(*transfers_)->enter()) array.refuse_closed();
  }
  ~Use() {
    if (transfers_) (*transfers_)->leave();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  /// Ends the use when the operations end.
  [[nodiscard]] Request until(std::vector<Request> operations, bool changes) {
    auto state = std::make_shared<array::GlobalTransfer>(*transfers_, std::move(operations), changes);
    const auto& transfers = *std::exchange(transfers_, nullptr);
    transfers->add(state);
    return Request(std::move(state));
  }

 private:
  const std::shared_ptr<array::Transfers>* transfers_;
};

std::shared_ptr<void> GlobalArray::hold() const {
  auto held = transfers_;
  if (!held->hold()) refuse_closed();
  return {held.get(), [held](void*) { held->let_go(); }};
}

void GlobalArray::check(const Slices& slices, const Strided& memory) const {
  check_open();
  const Box& box = slices.box;
  const Extents& step = slices.step;
  const Extents& limit = shape();
  bool fits = box.begin.rank() == limit.rank() && box.end.rank() == limit.rank();
  for (int i = 0; fits && i < limit.rank(); ++i)
    fits = 0 <= box.begin[i] && box.begin[i] <= box.end[i] && box.end[i] <= limit[i];
  const auto refuse = [&](const std::string& detail) {
    throw Error(EINVAL, {.attempted = "transfer of " + box.text() + " of a " + describe(type_, limit),
                         .detail = detail});
  };
  if (!fits) refuse("the box does not lie inside");
  if (memory.stride_bytes.rank() != limit.rank())
    refuse("the memory has " + std::to_string(memory.stride_bytes.rank()) + " dimensions");
  bool steps = step.rank() == limit.rank();
  for (const std::int64_t each : step.values()) steps = steps && each >= 1;
  if (!steps) refuse("steps " + step.text());
}

void GlobalArray::check_accumulate() const {
  if (element_bytes_ < 4)
    throw Error(EINVAL, {.attempted = "accumulate into a " + describe(type_, shape()),
                         .detail = "types of at least 4 bytes can be accumulated"});
}

const void* GlobalArray::one_if_null(const void* alpha) const noexcept {
  if (alpha) return alpha;
  return visit(type_, [](auto zero) -> const void* {
    using Element = decltype(zero);
    static const Element one{1};
    return &one;
  });
}

// ---- transfers ----

Strided GlobalArray::local() const {
  const Use use(*this);
  return {region_.local(), row_major(distribution_->local_shape(world_->rank()), element_bytes_)};
}

/// Makes one transfer; at once if this process can load and store the memory.
void GlobalArray::move(Operation operation, const transport::StridedTransfer& transfer, const void* alpha,
                       std::vector<Request>& operations) const {
  transport::Segment& segment = region_.segment();
  if (operation == Operation::accumulate) {
    operations.push_back(segment.accumulate(transfer, alpha));
    return;
  }
  if (std::byte* part = segment.direct(transfer.process)) {
    part += transfer.offset;
    if (operation == Operation::get)
      copy_strided(transfer.memory, transfer.memory_stride_bytes, part, transfer.stride_bytes, transfer.count,
                   element_bytes_);
    else
      copy_strided(part, transfer.stride_bytes, transfer.memory, transfer.memory_stride_bytes, transfer.count,
                   element_bytes_);
    return;
  }
  operations.push_back(operation == Operation::get ? segment.get(transfer) : segment.put(transfer));
}

Request GlobalArray::start(Operation operation, const Slices& slices, const Strided& memory,
                           const void* alpha) const {
  check(slices, memory);
  const Box& box = slices.box;
  const Extents& step = slices.step;
  Use use(*this);
  std::vector<Request> operations;
  const auto size = static_cast<std::int64_t>(element_bytes_);
  distribution_->for_each_part(box, [&](int process, const Box& part, std::int64_t element) {
    transport::StridedTransfer transfer{
        .process = process,
        .offset = 0,
        .stride_bytes = row_major(distribution_->local_shape(process), element_bytes_),
        .memory = memory.data,
        .memory_stride_bytes = memory.stride_bytes,
        .count = part.begin,
        .type = type_};
    std::int64_t offset = region_.offset() + element * size;
    for (int i = 0; i < part.rank(); ++i) {
      const std::int64_t first = round_up(part.begin[i] - box.begin[i], step[i]);  // from box.begin
      const std::int64_t left = part.end[i] - box.begin[i] - first;
      if (left <= 0) return;  // the steps pass over this part
      transfer.count[i] = (left + step[i] - 1) / step[i];
      offset += (box.begin[i] + first - part.begin[i]) * transfer.stride_bytes[i];
      transfer.memory += first / step[i] * memory.stride_bytes[i];
      if (transfer.count[i] > 1) transfer.stride_bytes[i] *= step[i];  // else of any size
    }
    transfer.offset = offset;
    move(operation, transfer, alpha, operations);
  });
  std::erase_if(operations, [](const Request& each) { return !each.state(); });
  if (operations.empty()) return {};
  return use.until(std::move(operations), operation != Operation::get);
}

Request GlobalArray::get_async(const Slices& slices, const Strided& memory) const {
  return start(Operation::get, slices, memory, nullptr);
}

Request GlobalArray::put_async(const Slices& slices, const Strided& memory) {
  return start(Operation::put, slices, memory, nullptr);
}

Request GlobalArray::accumulate_async(const Slices& slices, const Strided& memory, const void* alpha) {
  check_accumulate();
  return start(Operation::accumulate, slices, memory, one_if_null(alpha));
}

// ---- single elements ----

std::int64_t GlobalArray::read_increment(const Extents& index, std::int64_t value) {
  const Use use(*this);
  if (type_ != ElementType::int64)
    throw Error(EINVAL, {.attempted = "read and increment of an element of a " + describe(type_, shape()),
                         .detail = "it needs an array of int64"});
  (void)distribution_->owner(index);  // checks the index
  const auto location = distribution_->locate(index.values());
  return region_.segment().fetch_add(location.process, region_.offset() + location.element * 8, value);
}

Extents GlobalArray::scattered_shape(std::span<const std::int64_t> indices) const {
  const auto rank = static_cast<std::size_t>(shape().rank());
  if (indices.size() % rank != 0)
    throw Error(EINVAL, {.attempted = "scattered access to a " + describe(type_, shape()),
                         .detail = std::to_string(indices.size()) + " numbers are no list of indices"});
  return {static_cast<std::int64_t>(indices.size() / rank)};
}

void GlobalArray::scattered(Operation operation, std::span<const std::int64_t> indices, std::byte* memory,
                            const void* alpha) const {
  const Use use(*this);
  (void)scattered_shape(indices);  // checks it
  const auto rank = static_cast<std::size_t>(shape().rank());
  for (std::size_t k = 0; k < indices.size(); ++k)
    if (indices[k] < 0 || indices[k] >= shape()[static_cast<int>(k % rank)])
      throw Error(EINVAL, {.attempted = "scattered access to a " + describe(type_, shape()),
                           .detail = "index " + Extents(indices.subspan(k / rank * rank, rank)).text() +
                                     " is outside"});
  constexpr std::size_t max_under_way = 4096;
  std::vector<Request> operations;
  const auto wait = [&operations] {
    for (Request& each : operations) each.wait();
    operations.clear();
  };
  transport::StridedTransfer transfer{.process = 0,
                                      .offset = 0,
                                      .stride_bytes = {std::int64_t(element_bytes_)},
                                      .memory = memory,
                                      .memory_stride_bytes = {std::int64_t(element_bytes_)},
                                      .count = {1},
                                      .type = type_};
  for (std::size_t k = 0; k < indices.size(); k += rank, transfer.memory += element_bytes_) {
    const auto location = distribution_->locate(indices.subspan(k, rank));
    transfer.process = location.process;
    transfer.offset = region_.offset() + location.element * std::int64_t(element_bytes_);
    move(operation, transfer, alpha, operations);
    if (operations.size() >= max_under_way) wait();
  }
  wait();
}

void GlobalArray::gather(std::span<const std::int64_t> indices, std::byte* memory) const {
  scattered(Operation::get, indices, memory, nullptr);
}

void GlobalArray::scatter(std::span<const std::int64_t> indices, const std::byte* memory) {
  scattered(Operation::put, indices, const_cast<std::byte*>(memory), nullptr);  // a put only reads it
}

void GlobalArray::scatter_accumulate(std::span<const std::int64_t> indices, const std::byte* memory,
                                     const void* alpha) {
  check_accumulate();
  scattered(Operation::accumulate, indices, const_cast<std::byte*>(memory), one_if_null(alpha));
}

}  // namespace outcore
