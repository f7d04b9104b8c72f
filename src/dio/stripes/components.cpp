#include "dio/stripes/components.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"
#include "outcore/extend/transport.hpp"
#include "transport/remote_error.hpp"

namespace outcore::dio {
namespace {

[[noreturn]] void refuse(const std::string& detail) {
  throw Error(EINVAL, {.attempted = "serve bytes of a striped file", .detail = detail});
}

struct Request {
  bool write = false;
  std::vector<AskedRange> ranges;
  std::int64_t size_bytes = 0;
};

/// The request in a header; throws if it makes no sense.
Request parsed(std::span<const std::byte> header) {
  Ask ask;
  if (header.size() < sizeof ask) refuse("a header of " + std::to_string(header.size()) + " bytes");
  std::memcpy(&ask, header.data(), sizeof ask);
  if (ask.count < 1 || static_cast<std::size_t>(ask.count) > max_asked_ranges ||
      header.size() != sizeof ask + static_cast<std::size_t>(ask.count) * sizeof(AskedRange))
    refuse(std::to_string(ask.count) + " ranges in a header of " + std::to_string(header.size()) + " bytes");
  Request request{ask.write != 0, std::vector<AskedRange>(static_cast<std::size_t>(ask.count)), 0};
  std::memcpy(request.ranges.data(), header.data() + sizeof ask, header.size() - sizeof ask);
  for (const AskedRange& each : request.ranges) {
    const auto& [offset, size_bytes] = each.range;
    if (offset < 0 || size_bytes < 0 || size_bytes > max_asked_bytes)
      refuse(std::to_string(size_bytes) + " bytes at offset " + std::to_string(offset));
    request.size_bytes += size_bytes;
  }
  if (request.size_bytes > max_asked_bytes) refuse(std::to_string(request.size_bytes) + " bytes in one call");
  return request;
}

}  // namespace

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

void StripedComponents::read(int component, std::span<TransferRange> ranges) {
  device::File& file = at(component);
  const JoinedRanges joined(ranges, false);
  for (const JoinedRanges::Joined& one : joined.all())
    joined.zero_beyond(one, file.read(joined.list(one), one.offset));
}

void StripedComponents::write(int component, std::span<TransferRange> ranges) {
  device::File& file = at(component);
  const JoinedRanges joined(ranges, true);
  for (const JoinedRanges::Joined& one : joined.all()) file.write(joined.list(one), one.offset);
}

// ---- what others ask for

/// A call under way. It needs the components only until it has ended.
struct StripedComponents::Asked {
  struct OfComponent {
    int component = 0;
    JoinedRanges joined;
  };

  Asked(Call its_call, Request its_request) : call(std::move(its_call)), request(std::move(its_request)) {}

  /// The ranges and their memory.
  void lay_out(std::byte* memory) {
    std::vector<TransferRange> ranges;
    for (std::size_t i = 0; i < request.ranges.size(); ++i) {
      const AskedRange& next = request.ranges[i];
      ranges.push_back({next.range, memory});
      memory += next.range.size_bytes;
      if (i + 1 < request.ranges.size() && request.ranges[i + 1].component == next.component) continue;
      parts.push_back({static_cast<int>(next.component), JoinedRanges(ranges, request.write)});
      left += static_cast<int>(parts.back().joined.all().size());
      ranges.clear();
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
  std::vector<OfComponent> parts;
  std::atomic<int> left{0};
  std::mutex mutex;
  std::optional<Error> failure;
};

void StripedComponents::prepare_to_serve(Budget& budget) {
  replies = std::make_shared<ReplySlots>(budget);
  reads_.begin();
  copies_.begin();
  (void)device::default_engine();
}

void StripedComponents::serve(Call call) {
  Request request = parsed(call.header());
  for (const AskedRange& each : request.ranges) (void)at(static_cast<int>(each.component));
  if (request.write && static_cast<std::int64_t>(call.payload().size()) != request.size_bytes)
    refuse("a payload of " + std::to_string(call.payload().size()) + " bytes for ranges of " +
           std::to_string(request.size_bytes));
  auto asked = std::make_shared<Asked>(std::move(call), std::move(request));
  if (!asked->request.write && !suits_room(*asked)) {
    asked->reply = replies->try_take(asked->request.size_bytes);
    if (!asked->reply)
      return reads_.add([this, asked] {
        try {
          asked->reply = replies->take(asked->request.size_bytes);
          begin(asked);
        } catch (...) {
          asked->call.fail(transport::current_error("serve bytes of a striped file"));
        }
      });
  }
  begin(asked);
}

void StripedComponents::begin(const std::shared_ptr<Asked>& asked) {
  // A payload is only read from: a TransferRange has one type of pointer for both directions.
  asked->lay_out(asked->request.write ? const_cast<std::byte*>(asked->call.payload().data())
                 : asked->reply       ? asked->reply.get()
                                      : asked->call.room().data());
  if (serve_at_once(*asked)) return;
  if (copies(*asked)) return copies_.add([this, asked] { copy(*asked); });
  for (const Asked::OfComponent& part : asked->parts)
    for (const JoinedRanges::Joined& one : part.joined.all()) {
      const auto list = part.joined.list(one);
      const auto then = [asked, &part, &one, rank = rank](std::int64_t moved, const Error* error) {
        if (!asked->request.write && !error) part.joined.zero_beyond(one, moved);
        asked->ended(error, rank);
      };
      try {
        device::File& file = at(part.component);
        asked->request.write ? file.write_async(list, one.offset, then)
                             : file.read_async(list, one.offset, then);
      } catch (...) {
        const Error error = transport::current_error("serve bytes of a striped file");
        asked->ended(&error, rank);
      }
    }
}

/// A write into the page cache, for which the engine would use three threads in place of one.
bool StripedComponents::copies(const Asked& asked) {
  return asked.request.write && std::ranges::all_of(asked.parts, [&](const Asked::OfComponent& part) {
           return std::ranges::all_of(part.joined.all(), [&](const JoinedRanges::Joined& one) {
             return at(part.component).write_is_copy(one.offset, static_cast<std::size_t>(one.size_bytes));
           });
         });
}

void StripedComponents::copy(Asked& asked) {
  for (const Asked::OfComponent& part : asked.parts)
    for (const JoinedRanges::Joined& one : part.joined.all()) try {
        at(part.component).write(part.joined.list(one), one.offset);
        asked.ended(nullptr, rank);
      } catch (...) {
        const Error error = transport::current_error("serve bytes of a striped file");
        asked.ended(&error, rank);
      }
}

/// Large reads from the disk use memory of huge pages, which makes them twice as fast. Measured: [M1].
bool StripedComponents::suits_room(const Asked& asked) {
  if (asked.request.size_bytes > static_cast<std::int64_t>(asked.call.room().size())) return false;
  return asked.call.room_is_final() || asked.request.size_bytes <= ReplySlots::small_bytes ||
         std::ranges::all_of(asked.request.ranges, [&](const AskedRange& each) {
           return at(static_cast<int>(each.component)).resident(each.range.offset, each.range.size_bytes);
         });
}

/// Whether reads wait for nothing and take at most 0.1 ms. To hand them to another thread costs more: it
/// shares a core with a busy one.
bool StripedComponents::serve_at_once(Asked& asked) {
  if (asked.request.write) return false;
  for (const Asked::OfComponent& part : asked.parts)
    for (const JoinedRanges::Joined& one : part.joined.all())
      if (!at(part.component).resident(one.offset, one.size_bytes)) return false;
  for (const Asked::OfComponent& part : asked.parts)
    for (const JoinedRanges::Joined& one : part.joined.all())
      part.joined.zero_beyond(one, at(part.component).read(part.joined.list(one), one.offset));
  asked.answer();
  return true;
}

}  // namespace outcore::dio
