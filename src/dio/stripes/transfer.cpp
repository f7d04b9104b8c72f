// Reads and writes of a striped file: to components opened here, or to their owners.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "dio/stripes/striped_file_state.hpp"
#include "outcore/error.hpp"
#include "outcore/trace.hpp"

namespace outcore::dio {
namespace {

/// Ranges from this size on travel alone, from memory to memory; copying smaller ones costs less than a call.
constexpr std::int64_t alone_from_bytes = 32 << 10;

void check_range(std::string_view attempted, const std::string& name, std::int64_t offset, std::size_t size) {
  std::int64_t end = 0;
  if (offset < 0 || __builtin_add_overflow(offset, size, &end))
    throw Error(EINVAL, {.attempted = std::string(attempted),
                         .path = name,
                         .detail = "offset " + std::to_string(offset) + ", size " + std::to_string(size) +
                                   " bytes: not inside 64 bits"});
}

std::span<std::byte> memory_of(const ReadRange& range) {
  return range.memory;
}
std::span<std::byte> memory_of(const WriteRange& range) {  // a write only reads from it
  return {const_cast<std::byte*>(range.memory.data()), range.memory.size()};
}

/// The ranges of the file as ranges of components.
template <class Range>
std::vector<ComponentRange> component_ranges(const Stripes& stripes, std::span<const Range> ranges) {
  std::vector<ComponentRange> all;
  for (const Range& range : ranges) {
    const auto memory = memory_of(range);
    stripes.for_each_part(range.offset, static_cast<std::int64_t>(memory.size()),
                          [&](int component, std::int64_t at, std::int64_t from, std::int64_t size) {
                            all.push_back({component, {{at, size}, memory.data() + from}});
                          });
  }
  return all;
}

}  // namespace

// ---- one request

StripedFile::Transfer::~Transfer() {
  // The memory must stay until the request is complete. The caller keeps its own memory; this object keeps
  // ours.
  const bool keeps =
      std::any_of(local.begin(), local.end(), [](const Local& each) { return each.joined.sieves(); });
  if (keeps || !distant.empty() || copying) finish_quietly();
}

bool StripedFile::Transfer::done() const noexcept {
  if (finished()) return true;
  for (const Local& each : local)
    for (const Request& request : each.requests)
      if (!request.done()) return false;
  if (copying && copying->left.load(std::memory_order_acquire) > 0) return false;
  return std::all_of(distant.begin(), distant.end(), [](const Distant& each) { return each.call.done(); });
}

void StripedFile::Transfer::end() {
  std::exception_ptr failure;
  const std::uint64_t waits_from_ns = blocking || done() ? 0 : trace::now_ns();
  const auto guarded = [&](auto step) {
    try {
      step();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  };
  for (Local& each : local)
    for (std::size_t i = 0; i < each.requests.size(); ++i)
      guarded([&] {
        const std::int64_t moved = each.requests[i].wait();
        if (!write) each.joined.zero_beyond(each.joined.all()[i], moved);
      });
  for (Distant& each : distant)
    guarded([&] {
      each.call.wait();
      const std::byte* from = each.scattered.empty() ? nullptr : each.call.reply().data();
      for (const TransferRange& range : each.scattered) {
        std::memcpy(range.memory, from, static_cast<std::size_t>(range.size_bytes));
        from += range.size_bytes;
      }
    });
  if (copying) {
    for (int left = 0; (left = copying->left.load(std::memory_order_acquire)) > 0;) copying->left.wait(left);
    if (!failure) failure = copying->failure;
  }
  for (const std::int64_t block : changed_blocks) copies->forget(block);
  const std::uint64_t now = trace::now_ns();
  using trace::Op;
  const Op op = blocking ? (write ? Op::write : Op::read) : (write ? Op::write_async : Op::read_async);
  const std::uint64_t waited_ns = blocking ? now - start_ns : waits_from_ns > 0 ? now - waits_from_ns : 0;
  trace::record({.start_ns = start_ns,
                 .end_ns = now,
                 .waited_ns = waited_ns,
                 .offset = offset,
                 .bytes = failure ? 0 : size_bytes,
                 .file = trace_file,
                 .op = op,
                 .failed = static_cast<bool>(failure)});
  if (failure) std::rethrow_exception(failure);
}

bool StripedFile::Transfer::settled() {
  if (done()) finish();
  return Request::State::settled();
}

void StripedFile::Transfer::check_may_wait() const {
  if (!distant.empty() || copying) check_may_wait_for_calls();
}

bool StripedFile::Transfer::help() noexcept {
  for (const Distant& each : distant)
    if (!each.call.done()) each.call.state()->help();
  return false;
}

void StripedFile::Transfer::begin_wait() {
  check_may_wait();
  for (const Distant& each : distant) each.call.state()->begin_wait();
  for (const Local& each : local)
    for (const Request& request : each.requests)
      if (!request.done()) request.state()->begin_wait();
}

void StripedFile::Transfer::end_wait(std::uint64_t /*waited_ns*/) noexcept {
  for (const Distant& each : distant) each.call.state()->end_wait(0);
}

// ---- where its ranges go

template <class Range>
std::shared_ptr<StripedFile::Transfer> StripedFile::State::start(std::span<const Range> ranges,
                                                                 bool blocking) {
  constexpr bool write = std::is_same_v<Range, WriteRange>;
  std::vector<ComponentRange> all = component_ranges(stripes, ranges);
  auto request = std::make_shared<Transfer>();
  request->write = write;
  if (!ranges.empty()) request->offset = ranges.front().offset;
  request->blocking = blocking;
  request->start_ns = trace::now_ns();
  request->trace_file = trace_file;
  request->components = components;
  request->copies = copies;
  for (const ComponentRange& each : all) request->size_bytes += each.range.size_bytes;
  std::ranges::stable_sort(all, {}, &ComponentRange::component);
  std::vector<TransferRange> of_component;
  // Calls to others come first, so that they proceed while this process does its own part.
  for (const bool here : {false, true})
    for (std::size_t i = 0; i < all.size(); ++i) {
      const int component = all[i].component;
      if (reaches(component) != here) continue;
      of_component.push_back(all[i].range);
      if (i + 1 < all.size() && all[i + 1].component == component) continue;
      if (here)
        start_local(*request, component, std::move(of_component));
      else if (copies && !write)
        start_from_copies(*request, component, of_component);
      else
        start_distant(*request, component, of_component);
      of_component.clear();
    }
  if (write && !request->distant.empty()) undelivered.watch(request);
  return request;
}

void StripedFile::State::start_local(Transfer& request, int component, std::vector<TransferRange> ranges) {
  device::File& file = components->at(component);
  if (request.blocking) {  // in the calling thread: another would gain nothing
    request.write ? components->write(component, ranges) : components->read(component, ranges);
    return;
  }
  request.local.push_back({JoinedRanges(ranges, request.write), {}});
  Transfer::Local& local = request.local.back();
  for (const JoinedRanges::Joined& one : local.joined.all()) {
    const auto list = local.joined.list(one);
    local.requests.push_back(request.write ? file.write_async(list, one.offset)
                                           : file.read_async(list, one.offset));
  }
}

/// Cuts large ranges, and packs small ones.
void StripedFile::State::start_distant(Transfer& request, int component,
                                       std::span<const TransferRange> ranges) {
  if (copies && request.write) forget_blocks(request, component, ranges);
  std::vector<TransferRange> small;
  std::int64_t small_bytes = 0;
  const auto send_small = [&] {
    if (!small.empty()) ask(request, component, small);
    small.clear();
    small_bytes = 0;
  };
  for (TransferRange rest : ranges) {
    while (rest.size_bytes >= alone_from_bytes) {
      const TransferRange alone{{rest.offset, std::min(rest.size_bytes, max_asked_bytes)}, rest.memory};
      ask(request, component, {&alone, 1});
      rest = {{alone.end(), rest.size_bytes - alone.size_bytes}, rest.memory + alone.size_bytes};
    }
    if (rest.size_bytes == 0) continue;
    if (small.size() == max_asked_ranges || small_bytes + rest.size_bytes > max_asked_bytes) send_small();
    small.push_back(rest);
    small_bytes += rest.size_bytes;
  }
  send_small();
}

/// One call: a single range moves from or to the memory of the caller, several through a buffer.
void StripedFile::State::ask(Transfer& request, int component, std::span<const TransferRange> ranges,
                             std::function<void(std::span<std::byte> reply, const Error* error)> then) {
  std::array<std::byte, max_call_header_bytes> header;
  const Ask ask{request.write, static_cast<std::int32_t>(ranges.size())};
  std::byte* to = header.data();
  std::memcpy(to, &ask, sizeof ask);
  to += sizeof ask;
  std::int64_t size_bytes = 0;
  for (const TransferRange& range : ranges) {
    const AskedRange asked{component, range};
    std::memcpy(to, &asked, sizeof asked);
    to += sizeof asked;
    size_bytes += range.size_bytes;
  }
  Transfer::Distant distant;
  std::span<std::byte> memory{ranges[0].memory, static_cast<std::size_t>(size_bytes)};
  CallOptions options{.then = std::move(then)};
  if (ranges.size() > 1 && request.write) {
    distant.packed.reserve(memory.size());
    for (const TransferRange& range : ranges)
      distant.packed.insert(distant.packed.end(), range.memory, range.memory + range.size_bytes);
    memory = distant.packed;
  }
  if (!request.write && ranges.size() > 1) {
    distant.scattered.assign(ranges.begin(), ranges.end());
    options.max_reply_bytes = size_bytes;
  } else if (!request.write) {
    options.reply = memory;
  }
  const auto used = static_cast<std::size_t>(to - header.data());
  distant.call =
      world.call(owners[static_cast<std::size_t>(component)], procedure, std::span(header).first(used),
                 request.write ? memory : std::span<std::byte>{}, std::move(options));
  request.distant.push_back(std::move(distant));
}

// ---- what the user calls

namespace {

template <class Range>
void check_ranges(const StripedFile::State& state, std::string_view attempted,
                  std::span<const Range> ranges) {
  state.check_open(attempted);
  for (const Range& range : ranges) check_range(attempted, state.name, range.offset, range.memory.size());
}

/// Handles a single range in a component opened here: most small requests.
template <class Range>
std::optional<ComponentRange> single_local(const StripedFile::State& state, std::span<const Range> ranges) {
  if (ranges.size() != 1 || ranges[0].memory.empty()) return std::nullopt;
  const auto memory = memory_of(ranges[0]);
  const auto size = static_cast<std::int64_t>(memory.size());
  const Stripes::Location location = state.stripes.locate(ranges[0].offset);
  const std::int64_t stripe = state.stripes.stripe_bytes();
  const bool whole = state.stripes.components() == 1 || location.offset % stripe + size <= stripe;
  if (!whole || !state.reaches(location.component)) return std::nullopt;
  return ComponentRange{location.component, {{location.offset, size}, memory.data()}};
}

constexpr trace::Asker as_file{.layer = trace::Layer::file, .sequential = false};

}  // namespace

void StripedFile::read(std::span<const ReadRange> ranges) {
  check_ranges(*state_, "read", ranges);
  if (const auto single = single_local(*state_, ranges)) {
    const std::span memory = ranges[0].memory;
    const std::int64_t moved =
        state_->components->at(single->component).read(memory, single->range.offset, as_file);
    std::ranges::fill(memory.subspan(static_cast<std::size_t>(moved)), std::byte{0});
    return;
  }
  state_->start(ranges, true)->deliver();
}

void StripedFile::write(std::span<const WriteRange> ranges) {
  check_ranges(*state_, "write", ranges);
  if (const auto single = single_local(*state_, ranges)) {
    state_->components->at(single->component).write(ranges[0].memory, single->range.offset, as_file);
    return;
  }
  state_->start(ranges, true)->deliver();
}

Request StripedFile::read_async(std::span<const ReadRange> ranges) {
  check_ranges(*state_, "read", ranges);
  if (const auto single = single_local(*state_, ranges)) {
    const std::span memory = ranges[0].memory;
    if (state_->components->at(single->component).copy_cached(memory, single->range.offset, as_file))
      return Request(std::make_shared<CompleteRequest>(single->range.size_bytes));
  }
  return Request(state_->start(ranges, false));
}

Request StripedFile::write_async(std::span<const WriteRange> ranges) {
  check_ranges(*state_, "write", ranges);
  return Request(state_->start(ranges, false));
}

}  // namespace outcore::dio
