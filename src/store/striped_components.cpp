#include "store/striped_components.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "outcore/error.hpp"

namespace outcore::store {
namespace {

[[noreturn]] void refuse(const std::string& detail) {
  throw Error(EINVAL, {.attempted = "serve bytes of a striped file", .detail = detail});
}

struct Request {
  bool write = false;
  std::vector<AskedPiece> pieces;
  std::int64_t size_bytes = 0;
};

/// What a header asks for; throws if it makes no sense.
Request parsed(std::span<const std::byte> header) {
  Ask ask;
  if (header.size() < sizeof ask) refuse("a header of " + std::to_string(header.size()) + " bytes");
  std::memcpy(&ask, header.data(), sizeof ask);
  if (ask.count < 1 || static_cast<std::size_t>(ask.count) > most_asked_pieces ||
      header.size() != sizeof ask + static_cast<std::size_t>(ask.count) * sizeof(AskedPiece))
    refuse(std::to_string(ask.count) + " pieces in a header of " + std::to_string(header.size()) + " bytes");
  Request request{ask.write != 0, std::vector<AskedPiece>(static_cast<std::size_t>(ask.count)), 0};
  std::memcpy(request.pieces.data(), header.data() + sizeof ask, header.size() - sizeof ask);
  for (const AskedPiece& piece : request.pieces) {
    if (piece.offset < 0 || piece.size_bytes < 0 || piece.size_bytes > most_asked_bytes)
      refuse(std::to_string(piece.size_bytes) + " bytes at offset " + std::to_string(piece.offset));
    request.size_bytes += piece.size_bytes;
  }
  if (request.size_bytes > most_asked_bytes)
    refuse(std::to_string(request.size_bytes) + " bytes in one call");
  return request;
}

}  // namespace

ReplyMemory::ReplyMemory() : memory_(static_cast<std::size_t>(size_bytes)) {
  for (std::size_t i = 0; i < count; ++i)
    free_.push_back(memory_.data() + i * static_cast<std::size_t>(most_asked_bytes));
}

std::shared_ptr<std::byte> ReplyMemory::take() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return !free_.empty(); });
  std::byte* const piece = free_.back();
  free_.pop_back();
  return {piece, [self = shared_from_this()](std::byte* freed) {
            {
              const std::lock_guard guard(self->mutex_);
              self->free_.push_back(freed);
            }
            self->freed_.notify_one();
          }};
}

StripedComponents::~StripedComponents() {
  remove_names();
}

void StripedComponents::remove_names() noexcept {
  for (const std::string& name : std::exchange(names, {})) ::unlink(name.c_str());
}

device::File& StripedComponents::at(int component) {
  const auto c = static_cast<std::size_t>(component);
  if (component < 0 || c >= files.size() || !files[c])
    refuse("component " + std::to_string(component) + " is not here");
  return *files[c];
}

void StripedComponents::read(int component, std::span<Extent> extents) {
  device::File& file = at(component);
  const Runs runs(extents, false);
  for (const Runs::Run& run : runs.runs()) runs.zero_beyond(run, file.read(runs.list(run), run.offset));
}

void StripedComponents::write(int component, std::span<Extent> extents) {
  device::File& file = at(component);
  const Runs runs(extents, true);
  for (const Runs::Run& run : runs.runs()) file.write(runs.list(run), run.offset);
}

void StripedComponents::serve(Call call) {
  const Request request = parsed(call.header());
  std::shared_ptr<std::byte> reply;
  std::byte* memory = call.payload().data();
  if (request.write) {
    if (static_cast<std::int64_t>(call.payload().size()) != request.size_bytes)
      refuse("a payload of " + std::to_string(call.payload().size()) + " bytes for pieces of " +
             std::to_string(request.size_bytes));
  } else {
    reply = replies->take();
    memory = reply.get();
  }
  std::byte* const first = memory;
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < request.pieces.size(); ++i) {
    const AskedPiece& piece = request.pieces[i];
    extents.push_back({piece.offset, memory, piece.size_bytes});
    memory += piece.size_bytes;
    if (i + 1 < request.pieces.size() && request.pieces[i + 1].component == piece.component) continue;
    const auto component = static_cast<int>(piece.component);
    request.write ? write(component, extents) : read(component, extents);
    extents.clear();
  }
  if (request.write) return call.answer();
  call.answer({first, static_cast<std::size_t>(request.size_bytes)}, std::move(reply));
}

}  // namespace outcore::store
