#include "outcore/disk_array_access.hpp"

#include <cerrno>
#include <string>

#include "array/array_services.hpp"
#include "dio/chunks/client.hpp"
#include "outcore/error.hpp"

namespace outcore {
namespace {

using dio::ChunkClient;
using dio::ChunkOperation;

Request begin(const std::shared_ptr<ChunkClient>& client, ChunkOperation operation, const Slices& slices,
              const Strided& memory, const void* alpha = nullptr) {
  return client->start(operation, slices, memory, alpha, false);
}

void finish(const std::shared_ptr<ChunkClient>& client, ChunkOperation operation, const Slices& slices,
            const Strided& memory, const void* alpha = nullptr) {
  client->start(operation, slices, memory, alpha, true).wait();
}

}  // namespace

DiskArrayAccess::DiskArrayAccess() noexcept = default;
DiskArrayAccess::DiskArrayAccess(std::shared_ptr<ChunkClient> client) noexcept
    : client_(std::move(client), "use a disk array") {}
DiskArrayAccess::~DiskArrayAccess() = default;
DiskArrayAccess::DiskArrayAccess(DiskArrayAccess&&) noexcept = default;
DiskArrayAccess& DiskArrayAccess::operator=(DiskArrayAccess&&) noexcept = default;

DiskArrayAccess DiskArrayAccess::attach(World& world, const std::string& handle,
                                        std::int64_t client_cache_bytes) {
  dio::ChunkLayout layout = dio::ChunkLayout::decode(handle);
  for (const int owner : layout.owners)
    if (owner >= world.size())
      throw Error(EINVAL, {.attempted = "attach to a " + layout.text(),
                           .detail = "its process " + std::to_string(owner) + " is none of the " +
                                     std::to_string(world.size()) + " of this world"});
  array::ArrayServices& services = array::ArrayServices::present(world, "attach to a disk array");
  return DiskArrayAccess(
      std::make_shared<ChunkClient>(world, services.chunks, std::move(layout), nullptr, client_cache_bytes));
}

World& DiskArrayAccess::world() const noexcept {
  return client_.get()->world();
}
const Extents& DiskArrayAccess::shape() const noexcept {
  return client_.get()->layout().grid.shape();
}
const Extents& DiskArrayAccess::chunk() const noexcept {
  return client_.get()->layout().grid.chunk();
}
ElementType DiskArrayAccess::type() const noexcept {
  return client_.get()->layout().type;
}

// ---- transfers

Request DiskArrayAccess::get_async(const Slices& slices, const Strided& memory) const {
  return begin(client_.pointer(), ChunkOperation::get, slices, memory);
}
Request DiskArrayAccess::put_async(const Slices& slices, const Strided& memory) {
  return begin(client_.pointer(), ChunkOperation::put, slices, memory);
}
Request DiskArrayAccess::accumulate_async(const Slices& slices, const Strided& memory, const void* alpha) {
  return begin(client_.pointer(), ChunkOperation::accumulate, slices, memory, alpha);
}

void DiskArrayAccess::get(const Slices& slices, const Strided& memory) const {
  finish(client_.pointer(), ChunkOperation::get, slices, memory);
}
void DiskArrayAccess::put(const Slices& slices, const Strided& memory) {
  finish(client_.pointer(), ChunkOperation::put, slices, memory);
}
void DiskArrayAccess::accumulate(const Slices& slices, const Strided& memory, const void* alpha) {
  finish(client_.pointer(), ChunkOperation::accumulate, slices, memory, alpha);
}

// ---- the same with typed memory

namespace {

Strided as_bytes(const DiskArrayAccess& array, const Slices& slices, const ConstElements& memory) {
  return memory.strided(slices.shape(), array.type(), "disk array");
}

}  // namespace

Request DiskArrayAccess::get_async(const Slices& slices, const Elements& memory) const {
  return get_async(slices, as_bytes(*this, slices, memory));
}
Request DiskArrayAccess::put_async(const Slices& slices, const ConstElements& memory) {
  return put_async(slices, as_bytes(*this, slices, memory));
}
Request DiskArrayAccess::accumulate_async(const Slices& slices, const ConstElements& memory, Factor alpha) {
  const Factor::Value value = alpha.as(type());
  return accumulate_async(slices, as_bytes(*this, slices, memory), value.bytes.data());
}

void DiskArrayAccess::get(const Slices& slices, const Elements& memory) const {
  get(slices, as_bytes(*this, slices, memory));
}
void DiskArrayAccess::put(const Slices& slices, const ConstElements& memory) {
  put(slices, as_bytes(*this, slices, memory));
}
void DiskArrayAccess::accumulate(const Slices& slices, const ConstElements& memory, Factor alpha) {
  const Factor::Value value = alpha.as(type());
  accumulate(slices, as_bytes(*this, slices, memory), value.bytes.data());
}

void DiskArrayAccess::prefetch(std::span<const Box> boxes) const {
  for (const Box& box : boxes) client_->prefetch(box);
}

void DiskArrayAccess::sync() {
  client_->check_open("sync");
  const std::exception_ptr error = client_->settle();
  client_->forget_copies();
  if (error) std::rethrow_exception(error);
}

}  // namespace outcore
