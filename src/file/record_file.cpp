#include "outcore/record_file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <mutex>
#include <utility>

#include "base/request_state.hpp"
#include "base/undelivered.hpp"
#include "dio/stripes/striped_file.hpp"
#include "file/record_directory.hpp"
#include "file/record_space.hpp"
#include "outcore/error.hpp"
#include "store/checksum.hpp"

namespace outcore::file {
namespace {

constexpr std::string_view creating = "create record file";
constexpr std::int64_t usual_extent_bytes = 1 << 20;
constexpr std::int64_t records_in_an_extent = 16;
constexpr std::int64_t granule_bytes = 64;

/// The header of a record.
struct Header {
  std::int64_t record = 0, size_bytes = 0;
  std::uint32_t stamp = 0;
  std::uint32_t checksum = 0;  ///< of the fields above, and of the bytes
};
constexpr std::int64_t large_bytes = 1 << 20;  // of a record
constexpr auto header_bytes = static_cast<std::int64_t>(sizeof(Header));

std::uint32_t checksum(const Header& header, std::span<const std::byte> data) {
  return store::crc32c(data,
                       store::crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum))));
}

void check(const std::string& name, const RecordFileOptions& options) {
  const auto refuse = [&](const std::string& why) {
    throw Error(EINVAL, {.attempted = std::string(creating), .path = "'" + name + "'", .detail = why});
  };
  if (name.empty()) refuse("the name is empty");
  if (options.records < 1) refuse(std::to_string(options.records) + " records");
  if (options.hard_limit_bytes < 0) refuse("hard limit " + std::to_string(options.hard_limit_bytes));
  if (options.soft_limit_bytes < 0) refuse("soft limit " + std::to_string(options.soft_limit_bytes));
  if (options.typical_record_bytes < 0)
    refuse("typical records of " + std::to_string(options.typical_record_bytes) + " bytes");
}

/// The size of an extent that a process takes: room for several records, but only a small part of the whole
/// limit.
std::int64_t extent_granules(const RecordFileOptions& options, std::int64_t limit_granules, int processes) {
  const std::int64_t typical = std::min<std::int64_t>(options.typical_record_bytes, 16 << 20);
  const std::int64_t wanted = std::max(usual_extent_bytes, typical * records_in_an_extent);
  return std::min(wanted / granule_bytes, limit_granules / (16 * processes));
}

}  // namespace

struct RecordFile::State : std::enable_shared_from_this<RecordFile::State> {
  /// The arguments, once all processes agree on them.
  struct Prepared {
    std::string name;
    RecordFileOptions options;
    Prepared(World& world, const Make& make) {
      world.enter(creating, [&] {
        make(name, options);
        check(name, options);
        const std::array numbers{options.records, options.hard_limit_bytes};
        return fingerprint(std::as_bytes(std::span(numbers)));
      });
    }
  };

  State(World& world, const Prepared& prepared)
      : name(prepared.name),
        records(prepared.options.records),
        limit_granules(prepared.options.hard_limit_bytes > 0
                           ? prepared.options.hard_limit_bytes / granule_bytes
                           : RecordEntry::max_granules),
        stored(world, dio::StripedFileOptions{.name = prepared.name,
                                              .typical_request_bytes = prepared.options.typical_record_bytes,
                                              .expected_bytes = prepared.options.soft_limit_bytes,
                                              .placement = prepared.options.placement,
                                              .page_cache = prepared.options.page_cache,
                                              .engine = prepared.options.engine}),
        directory(world, records),
        taken(world),
        space(granule_bytes, extent_granules(prepared.options, limit_granules, world.size()),
              [this](std::int64_t, std::int64_t granules) { return take_extent(granules); }) {}

  const std::string name;
  const std::int64_t records, limit_granules;
  dio::StripedFile stored;
  RecordDirectory directory;
  Counter taken;  ///< granules, by all processes
  RecordSpace space;
  std::atomic<std::uint32_t> puts{0};
  Undelivered undelivered;  ///< errors of puts, which may not have taken effect yet

  [[nodiscard]] Error error(int errno_value, std::string_view attempted, std::int64_t record,
                            std::string detail) const {
    return {errno_value,
            {.attempted = std::string(attempted) + " record " + std::to_string(record),
             .path = name,
             .detail = std::move(detail)}};
  }
  void check_record(std::string_view attempted, std::int64_t record) const {
    if (stored.closed()) throw error(EBADF, attempted, record, "the file is closed");
    if (record < 0 || record >= records)
      throw error(EINVAL, attempted, record, "records are 0 to " + std::to_string(records - 1));
  }

  std::optional<RecordSpace::Extent> take_extent(std::int64_t granules) {
    if (const auto first = taken.next_within(limit_granules, granules))
      return RecordSpace::Extent{*first, granules};
    throw Error(EFBIG, {.attempted = "take space for records",
                        .path = name,
                        .size_bytes = granules * granule_bytes,
                        .detail = std::to_string(taken.next(0) * granule_bytes) + " bytes of " +
                                  std::to_string(limit_granules * granule_bytes) + " are taken"});
  }

  // A waiting caller moves a small record itself, because handing it over costs more. Measured: [M38]. A
  // large record is read from several disks at the same time.
  enum class By : std::uint8_t { caller, others };
  std::shared_ptr<Transfer> begin_put(std::int64_t record, std::span<const std::byte> data, By by);
  std::shared_ptr<Transfer> begin_get(std::int64_t record, std::span<std::byte> buffer, RecordEntry entry,
                                      By by);
  std::int64_t get(std::int64_t record, std::span<std::byte> buffer);
};

/// A put or get under way.
class RecordFile::Transfer final : public FinishedByWaiter {
 public:
  std::shared_ptr<RecordFile::State> file;
  std::int64_t record = 0;
  bool write = false;
  RecordEntry entry;
  Header header;
  std::span<std::byte> buffer;  ///< of a get: the part of the caller's memory that the place may fill
  std::span<std::byte> given;
  Request moving;

  ~Transfer() override {
    try {
      moving.wait();                   // the header is ours
    } catch (const std::exception&) {  // of a get that nobody waited for
    }
  }

  [[nodiscard]] bool done() const noexcept override { return finished() || moving.done(); }
  [[nodiscard]] std::int64_t value() const noexcept override { return header.size_bytes; }
  bool help() noexcept override { return moving.state() && moving.state()->help(); }
  void check_may_wait() const override {
    if (moving.state()) moving.state()->check_may_wait();
  }
  void begin_wait() override {
    if (moving.state()) moving.state()->begin_wait();
  }
  void end_wait(std::uint64_t waited_ns) noexcept override {
    if (moving.state()) moving.state()->end_wait(waited_ns);
  }
  /// Whether the bytes that were read are the record of the entry.
  [[nodiscard]] bool holds() const {
    const std::int64_t room = file->space.capacity_bytes(entry.allocation()) - header_bytes;
    if (header.record != record || header.stamp != entry.stamp() || header.size_bytes < 0 ||
        header.size_bytes > room)
      return false;
    const auto size = static_cast<std::size_t>(header.size_bytes);
    return size > buffer.size() || checksum(header, buffer.first(size)) == header.checksum;
  }

 private:
  void end() override { write ? commit() : verify(); }

  void commit() {
    try {
      moving.wait();
    } catch (...) {
      file->space.give(entry.allocation());
      throw;
    }
    const RecordEntry old = file->directory.exchange(record, entry);
    if (!old.empty()) file->space.give(old.allocation());
  }

  void verify() {
    moving.wait();
    if (!holds() || header.size_bytes > static_cast<std::int64_t>(buffer.size()))
      header.size_bytes = file->get(record, given);  // replaced meanwhile, or an error, which a retry reports
  }
};

std::shared_ptr<RecordFile::Transfer> RecordFile::State::begin_put(std::int64_t record,
                                                                   std::span<const std::byte> data, By by) {
  check_record("put", record);
  auto put = std::make_shared<Transfer>();
  put->file = shared_from_this();
  put->record = record;
  put->write = true;
  const auto size = static_cast<std::int64_t>(data.size());
  const RecordSpace::Allocation allocation = space.take(size + header_bytes).value();
  const auto stamp = static_cast<std::uint16_t>(1 + puts.fetch_add(1, std::memory_order_relaxed) % 0xFFFF);
  put->entry = RecordEntry(allocation, stamp);
  put->header = {.record = record, .size_bytes = size, .stamp = stamp};
  put->header.checksum = checksum(put->header, data);
  const std::int64_t offset = space.offset(allocation);
  const std::array ranges{WriteRange{offset, std::as_bytes(std::span(&put->header, 1))},
                          WriteRange{offset + header_bytes, data}};
  try {
    if (by == By::caller && size < large_bytes)
      stored.write(ranges);
    else
      put->moving = stored.write_async(ranges);
  } catch (...) {
    space.give(allocation);
    throw;
  }
  return put;
}

std::shared_ptr<RecordFile::Transfer> RecordFile::State::begin_get(std::int64_t record,
                                                                   std::span<std::byte> buffer,
                                                                   RecordEntry entry, By by) {
  auto get = std::make_shared<Transfer>();
  get->file = shared_from_this();
  get->record = record;
  get->entry = entry;
  get->given = buffer;
  const RecordSpace::Allocation allocation = entry.allocation();
  get->buffer = buffer.first(
      std::min(buffer.size(), static_cast<std::size_t>(space.capacity_bytes(allocation) - header_bytes)));
  const std::int64_t offset = space.offset(allocation);
  const std::array ranges{ReadRange{offset, std::as_writable_bytes(std::span(&get->header, 1))},
                          ReadRange{offset + header_bytes, get->buffer}};
  if (by == By::caller && std::ssize(get->buffer) < large_bytes)
    stored.read(ranges);
  else
    get->moving = stored.read_async(ranges);
  return get;
}

std::int64_t RecordFile::State::get(std::int64_t record, std::span<std::byte> buffer) {
  for (RecordEntry entry = directory.entry(record);;) {
    if (entry.empty()) throw error(ENOENT, "get", record, "there is none of this number");
    const auto read = begin_get(record, buffer, entry, By::caller);
    read->moving.wait();
    const RecordEntry now = directory.entry(record);
    if (read->holds()) {
      if (read->header.size_bytes <= static_cast<std::int64_t>(buffer.size())) return read->header.size_bytes;
      if (now == entry)
        throw error(EMSGSIZE, "get", record,
                    "it has " + std::to_string(read->header.size_bytes) + " bytes, the buffer " +
                        std::to_string(buffer.size()));
    } else if (now == entry) {
      throw error(EIO, "get", record,
                  "damaged: " + std::to_string(space.capacity_bytes(entry.allocation())) +
                      " bytes at offset " + std::to_string(space.offset(entry.allocation())) +
                      " do not match their checksum");
    }
    entry = now;  // its place was used again meanwhile
  }
}

// ---- what the user calls

RecordFile::RecordFile(World& world, const std::string& name, const RecordFileOptions& options)
    : RecordFile(world, [&](std::string& its_name, RecordFileOptions& its_options) {
        its_name = name;
        its_options = options;
      }) {}

RecordFile::RecordFile(World& world, const Make& make)
    : state_(std::make_shared<State>(world, State::Prepared(world, make)), "use a record file") {}

RecordFile::~RecordFile() {
  try {
    if (state_ && state_.here() && !closed())
      (void)state_->undelivered.take();  // a put and the state hold each other
  } catch (const Error&) {               // close() tells
  }
}
RecordFile::RecordFile(RecordFile&&) noexcept = default;
RecordFile& RecordFile::operator=(RecordFile&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

void RecordFile::check_size(std::int64_t record, std::size_t size_bytes, std::size_t element_bytes) {
  if (size_bytes % element_bytes != 0)
    throw Error(EINVAL, {.attempted = "get record " + std::to_string(record),
                         .size_bytes = static_cast<std::int64_t>(size_bytes),
                         .detail = "which is no whole number of elements of " +
                                   std::to_string(element_bytes) + " bytes"});
}

void RecordFile::put(std::int64_t record, ConstPlainMemory data) {
  state_->begin_put(record, data, State::By::caller)->deliver();
}

Request RecordFile::put_async(std::int64_t record, ConstPlainMemory data) {
  auto put = state_->begin_put(record, data, State::By::others);
  state_->undelivered.watch(put);
  return Request(std::move(put));
}

std::int64_t RecordFile::get(std::int64_t record, PlainMemory buffer) {
  state_->check_record("get", record);
  return state_->get(record, buffer);
}

std::vector<std::byte> RecordFile::get(std::int64_t record) {
  for (;;) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(capacity(record).value_or(0)));
    try {
      bytes.resize(static_cast<std::size_t>(get(record, bytes)));
      return bytes;
    } catch (const Error& error) {
      if (error.errno_value() != EMSGSIZE) throw;  // else it has grown meanwhile
    }
  }
}

Request RecordFile::get_async(std::int64_t record, PlainMemory buffer) {
  state_->check_record("get", record);
  const RecordEntry entry = state_->directory.entry(record);
  if (entry.empty()) throw state_->error(ENOENT, "get", record, "there is none of this number");
  return Request(state_->begin_get(record, buffer, entry, State::By::others));
}

std::optional<std::int64_t> RecordFile::capacity(std::int64_t record) {
  state_->check_record("look for", record);
  const RecordEntry entry = state_->directory.entry(record);
  if (entry.empty()) return std::nullopt;
  return state_->space.capacity_bytes(entry.allocation()) - header_bytes;
}

std::optional<std::int64_t> RecordFile::size(std::int64_t record) {
  state_->check_record("ask for the size of", record);
  for (RecordEntry entry = state_->directory.entry(record); !entry.empty();) {
    const auto head = state_->begin_get(record, {}, entry, State::By::caller);  // moved: it is small
    const RecordEntry now = state_->directory.entry(record);
    if (now == entry && head->holds()) return head->header.size_bytes;
    if (now == entry) throw state_->error(EIO, "ask for the size of", record, "damaged");
    entry = now;
  }
  return std::nullopt;
}

void RecordFile::erase(std::int64_t record) {
  state_->check_record("erase", record);
  const RecordEntry old = state_->directory.exchange(record, {});
  if (!old.empty()) state_->space.give(old.allocation());
}

void RecordFile::sync() {
  if (closed()) throw Error(EBADF, {.attempted = "sync", .path = name(), .detail = "it is closed"});
  state_->undelivered.raise();
}

void RecordFile::flush() {
  world().together("flush record file", 0, [&] { sync(); });
  state_->stored.flush();
}

void RecordFile::close() {
  if (!state_.here() || closed()) return;
  std::exception_ptr failure;
  try {
    world().together("close record file", 0, [&] { state_->undelivered.raise(); });
  } catch (...) {
    failure = std::current_exception();
  }
  state_->stored.close();
  if (failure) std::rethrow_exception(failure);
}

bool RecordFile::closed() const noexcept {
  return !state_ || state_.get()->stored.closed();
}
const std::string& RecordFile::name() const noexcept {
  return state_.get()->name;
}
std::int64_t RecordFile::records() const noexcept {
  return state_.get()->records;
}
std::int64_t RecordFile::taken_bytes() {
  return state_->taken.next(0) * granule_bytes;
}
World& RecordFile::world() const noexcept {
  return state_.get()->stored.world();
}

}  // namespace outcore::file
