#include "dio/stripes/components.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "outcore/error.hpp"
#include "transport/remote_error.hpp"

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
  if (ask.count < 1 || static_cast<std::size_t>(ask.count) > max_asked_pieces ||
      header.size() != sizeof ask + static_cast<std::size_t>(ask.count) * sizeof(AskedPiece))
    refuse(std::to_string(ask.count) + " pieces in a header of " + std::to_string(header.size()) + " bytes");
  Request request{ask.write != 0, std::vector<AskedPiece>(static_cast<std::size_t>(ask.count)), 0};
  std::memcpy(request.pieces.data(), header.data() + sizeof ask, header.size() - sizeof ask);
  for (const AskedPiece& piece : request.pieces) {
    if (piece.offset < 0 || piece.size_bytes < 0 || piece.size_bytes > max_asked_bytes)
      refuse(std::to_string(piece.size_bytes) + " bytes at offset " + std::to_string(piece.offset));
    request.size_bytes += piece.size_bytes;
  }
  if (request.size_bytes > max_asked_bytes) refuse(std::to_string(request.size_bytes) + " bytes in one call");
  return request;
}

}  // namespace

ReplyMemory::ReplyMemory() : memory_(static_cast<std::size_t>(size_bytes)) {
  std::byte* const end = memory_.data() + size_bytes;
  std::byte* slot = memory_.data();
  for (; slot < end - 64 * small_bytes; slot += max_asked_bytes) large_.push_back(slot);
  for (; slot < end; slot += small_bytes) small_.push_back(slot);
}

std::shared_ptr<std::byte> ReplyMemory::take_one(std::vector<std::byte*>& free) {
  std::byte* const slot = free.back();
  free.pop_back();
  return {slot, [self = shared_from_this(), &free](std::byte* freed) {
            {
              const std::lock_guard guard(self->mutex_);
              free.push_back(freed);
            }
            self->freed_.notify_all();
          }};
}

std::shared_ptr<std::byte> ReplyMemory::try_take(std::int64_t wanted_bytes) {
  const std::lock_guard guard(mutex_);
  auto& free = slots_for(wanted_bytes);
  return free.empty() ? nullptr : take_one(free);
}

std::shared_ptr<std::byte> ReplyMemory::take(std::int64_t wanted_bytes) {
  std::unique_lock lock(mutex_);
  auto& free = slots_for(wanted_bytes);
  freed_.wait(lock, [&] { return !free.empty(); });
  return take_one(free);
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

// ---- what others ask for

/// A call under way. It needs the components no longer than until it has ended.
struct StripedComponents::Asked {
  struct Part {
    int component = 0;
    Runs runs;
  };

  Asked(Call its_call, Request its_request) : call(std::move(its_call)), request(std::move(its_request)) {}

  /// The pieces, with the memory that they go to or come from.
  void lay_out(std::byte* memory) {
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < request.pieces.size(); ++i) {
      const AskedPiece& piece = request.pieces[i];
      extents.push_back({piece.offset, memory, piece.size_bytes});
      memory += piece.size_bytes;
      if (i + 1 < request.pieces.size() && request.pieces[i + 1].component == piece.component) continue;
      parts.push_back({static_cast<int>(piece.component), Runs(extents, request.write)});
      left += static_cast<int>(parts.back().runs.runs().size());
      extents.clear();
    }
  }

  /// One of its transfers has ended. The last one ends the call.
  void ended(const Error* error, int rank) {
    if (error) {
      const std::lock_guard guard(mutex);
      if (!failure) failure.emplace(error->errno_value(), error->context(), rank);
    }
    if (left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    const std::lock_guard guard(mutex);
    failure ? call.fail(*failure) : answer();
  }

  void answer() {
    if (request.write) return call.answer();
    if (!reply) return call.answer(call.room().first(static_cast<std::size_t>(request.size_bytes)));
    const std::span<const std::byte> bytes(reply.get(), static_cast<std::size_t>(request.size_bytes));
    call.answer(bytes, std::move(reply));
  }

  Call call;
  Request request;
  std::shared_ptr<std::byte> reply;
  std::vector<Part> parts;
  std::atomic<int> left{0};
  std::mutex mutex;
  std::optional<Error> failure;
};

void StripedComponents::serve(Call call) {
  Request request = parsed(call.header());
  for (const AskedPiece& piece : request.pieces) (void)at(static_cast<int>(piece.component));
  if (request.write && static_cast<std::int64_t>(call.payload().size()) != request.size_bytes)
    refuse("a payload of " + std::to_string(call.payload().size()) + " bytes for pieces of " +
           std::to_string(request.size_bytes));
  auto asked = std::make_shared<Asked>(std::move(call), std::move(request));
  if (!asked->request.write && !suits_room(*asked)) {
    asked->reply = replies->try_take(asked->request.size_bytes);
    if (!asked->reply)
      return reads_.add([this, asked] {
        asked->reply = replies->take(asked->request.size_bytes);
        try {
          begin(asked);
        } catch (...) {
          asked->call.fail(transport::current_error("serve bytes of a striped file"));
        }
      });
  }
  begin(asked);
}

void StripedComponents::begin(const std::shared_ptr<Asked>& asked) {
  // A payload is only read from: an Extent has one type of pointer for both directions.
  asked->lay_out(asked->request.write ? const_cast<std::byte*>(asked->call.payload().data())
                 : asked->reply       ? asked->reply.get()
                                      : asked->call.room().data());
  if (serve_at_once(*asked)) return;
  if (copies(*asked)) return copies_.add([this, asked] { copy(*asked); });
  for (const Asked::Part& part : asked->parts)
    for (const Runs::Run& run : part.runs.runs()) {
      const auto list = part.runs.list(run);
      const auto then = [asked, &part, &run, rank = rank](std::int64_t moved, const Error* error) {
        if (!asked->request.write && !error) part.runs.zero_beyond(run, moved);
        asked->ended(error, rank);
      };
      try {
        device::File& file = at(part.component);
        asked->request.write ? file.write_async(list, run.offset, then)
                             : file.read_async(list, run.offset, then);
      } catch (...) {
        const Error error = transport::current_error("serve bytes of a striped file");
        asked->ended(&error, rank);
      }
    }
}

/// Writes into the page cache: the engine would take three threads for one.
bool StripedComponents::copies(const Asked& asked) {
  return asked.request.write && std::ranges::all_of(asked.parts, [&](const Asked::Part& part) {
           return std::ranges::all_of(part.runs.runs(), [&](const Runs::Run& run) {
             return at(part.component).write_is_copy(run.offset, static_cast<std::size_t>(run.size_bytes));
           });
         });
}

void StripedComponents::copy(Asked& asked) {
  for (const Asked::Part& part : asked.parts)
    for (const Runs::Run& run : part.runs.runs()) try {
        at(part.component).write(part.runs.list(run), run.offset);
        asked.ended(nullptr, rank);
      } catch (...) {
        const Error error = transport::current_error("serve bytes of a striped file");
        asked.ended(&error, rank);
      }
}

/// What is large and comes from the disk is better off in memory of huge pages: it is read twice as fast.
bool StripedComponents::suits_room(const Asked& asked) {
  if (asked.request.size_bytes > static_cast<std::int64_t>(asked.call.room().size())) return false;
  return asked.call.room_is_final() || asked.request.size_bytes <= ReplyMemory::small_bytes ||
         std::ranges::all_of(asked.request.pieces, [&](const AskedPiece& piece) {
           return at(static_cast<int>(piece.component)).resident(piece.offset, piece.size_bytes);
         });
}

/// Reads that wait for nothing, 0.1 ms at most. Handing them to another thread costs more: it shares a core
/// with one that is as busy.
bool StripedComponents::serve_at_once(Asked& asked) {
  if (asked.request.write) return false;
  for (const Asked::Part& part : asked.parts)
    for (const Runs::Run& run : part.runs.runs())
      if (!at(part.component).resident(run.offset, run.size_bytes)) return false;
  for (const Asked::Part& part : asked.parts)
    for (const Runs::Run& run : part.runs.runs())
      part.runs.zero_beyond(run, at(part.component).read(part.runs.list(run), run.offset));
  asked.answer();
  return true;
}

}  // namespace outcore::store
