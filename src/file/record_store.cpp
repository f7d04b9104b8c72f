#include "file/record_store.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "outcore/error.hpp"
#include "store/block_float.hpp"

namespace outcore::file {
namespace {

constexpr std::int64_t granule_bytes = 8;     // of memory
constexpr std::int64_t extents_of_each = 32;  // of memory, for each process if all take as many
constexpr std::int64_t neighbours = 4;        // the most entries that are read for each one that is wanted
constexpr std::int64_t locks = 128;           // records share them
constexpr std::int64_t packed_bytes = 4;      // about, for a number
constexpr std::string_view creating = "create record store";

/// Checks the options in a gate: all processes raise the same error.
const RecordStoreOptions& agreed(World& world, const std::string& name, const RecordStoreOptions& options) {
  world.enter(creating, [&] {
    const auto refuse = [&](const std::string& detail) {
      throw Error(EINVAL, {.attempted = std::string(creating), .path = "'" + name + "'", .detail = detail});
    };
    if (options.sizes.empty()) refuse("0 records");
    for (const std::int64_t each : options.sizes)
      if (each < 0 || store::max_packed_bytes(static_cast<std::size_t>(each)) > 0x7fffffff)
        refuse("a record of " + std::to_string(each) + " numbers");
    if (options.memory_bytes < 0) refuse("memory of " + std::to_string(options.memory_bytes) + " bytes");
    std::vector<std::int64_t> all(options.sizes);
    all.push_back(options.memory_bytes);
    return fingerprint(std::as_bytes(std::span(all)));
  });
  return options;
}

RecordFileOptions file_options(const RecordStoreOptions& options) {
  const auto records = std::ssize(options.sizes);
  const auto numbers = std::accumulate(options.sizes.begin(), options.sizes.end(), std::int64_t{0});
  return {.records = records,
          .typical_record_bytes = numbers / records * packed_bytes + 64,
          .placement = options.placement,
          .engine = options.engine};
}

std::int64_t granules_of(std::int64_t part_bytes) {
  return std::max<std::int64_t>(part_bytes, granule_bytes) / granule_bytes;
}

template <class T>
std::span<std::byte> bytes_of(T* data, std::size_t count) {
  return std::as_writable_bytes(std::span(data, count));
}

[[noreturn]] void refuse_damaged(std::int64_t record, const char* detail) {
  throw Error(EIO, {.attempted = "read record " + std::to_string(record), .detail = detail});
}

}  // namespace

void RecordTraffic::add(std::int64_t of_one) noexcept {
  least = count == 0 ? of_one : std::min(least, of_one);
  most = std::max(most, of_one);
  ++count;
  bytes += of_one;
}

struct RecordStore::Buffers {
  std::vector<std::byte> packed;
  std::vector<double> numbers;
};

RecordStore::RecordStore(World& world, const std::string& name, RecordStoreOptions options)
    : world_(world),
      sizes_(agreed(world, name, options).sizes),
      memory_(world, granules_of(options.memory_bytes) * granule_bytes, "packed records"),
      directory_(world, (std::ssize(sizes_) + world.size() - 1) / world.size() * std::int64_t(sizeof(Entry)),
                 "directory of packed records"),
      file_(world, name, file_options(options)),
      taken_(world),
      space_(granule_bytes, granules_of(options.memory_bytes) / extents_of_each,
             [this](std::int64_t least, std::int64_t wanted) { return take_extent(least, wanted); }),
      reserve_(options.reserve_bytes) {
  for (std::int64_t i = 0; i < locks; ++i) locks_.emplace_back(world);
}

void RecordStore::close() {
  file_.close();
  memory_.release();
  directory_.release();
}

void RecordStore::check_open(std::string_view attempted) const {
  if (file_.closed())
    throw Error(EBADF, {.attempted = std::string(attempted) + " records",
                        .path = file_.name(),
                        .detail = "the store is closed"});
}

void RecordStore::check(std::string_view attempted, std::span<const std::int64_t> records,
                        std::size_t numbers) const {
  check_open(attempted);
  std::int64_t sum = 0;
  for (const std::int64_t each : records) sum += sizes_.at(std::size_t(each));
  if (std::size_t(sum) != numbers)
    throw std::invalid_argument("numbers of another count than the records have");
}

RecordStore::Entry RecordStore::entry(std::int64_t record) const {
  Entry found{};
  directory_.get(record * std::int64_t(sizeof found), bytes_of(&found, 1));
  return found;
}

void RecordStore::set(std::int64_t record, const Entry& entry) {
  directory_.put(record * std::int64_t(sizeof entry), std::as_bytes(std::span(&entry, 1)));
}

/// Moves neighbours in one transfer.
std::vector<RecordStore::Entry> RecordStore::entries(std::span<const std::int64_t> records) const {
  std::vector<Entry> found, all;
  found.reserve(records.size());
  for (std::size_t i = 0; i < records.size();) {
    std::size_t end = i + 1;
    while (end < records.size() && records[end] > records[end - 1] &&
           records[end] - records[i] < neighbours * std::int64_t(end - i))
      ++end;
    const std::int64_t first = records[i], count = records[end - 1] - first + 1;
    all.resize(std::size_t(count));
    directory_.get(first * std::int64_t(sizeof(Entry)), bytes_of(all.data(), all.size()));
    for (; i < end; ++i) found.push_back(all[std::size_t(records[i] - first)]);
  }
  return found;
}

RecordStore::Place RecordStore::place(std::int64_t record) const {
  check_open("look for");
  if (record < 0 || record >= std::ssize(sizes_)) throw std::out_of_range("record");
  const Entry found = entry(record);
  return {found.place == 0 ? 0 : found.bytes(), found.place > 0};
}

void RecordStore::set_reserve(std::int64_t bytes) {
  const std::lock_guard guard(mutex_);
  reserve_ = bytes;
}

RecordStoreCounts RecordStore::counts() const {
  const std::lock_guard guard(mutex_);
  return counts_;
}

/// Whether less than the reserve would be left.
bool RecordStore::is_scarce(std::int64_t bytes) {
  const std::lock_guard guard(mutex_);
  const std::int64_t left = memory_.size_bytes() - taken_.next(0) * granule_bytes;
  return left + space_.free_bytes() - bytes < reserve_;
}

std::optional<RecordSpace::Extent> RecordStore::take_extent(std::int64_t least, std::int64_t wanted) {
  for (const std::int64_t granules : {wanted, least})
    if (const auto first = taken_.next_within(memory_.size_bytes() / granule_bytes, granules))
      return RecordSpace::Extent{*first, granules};
  return std::nullopt;
}

/// A packed record begins with the error bound of its numbers.
void RecordStore::load(std::int64_t record, const Entry& entry, std::span<double> numbers, Buffers& buffers) {
  if (entry.place == 0) {
    std::fill(numbers.begin(), numbers.end(), 0.0);
    return;
  }
  const auto bytes = std::size_t(entry.bytes());
  if (entry.place > 0) {
    if (buffers.packed.size() < bytes) buffers.packed.resize(bytes);
    memory_.get(space_.offset(entry.allocation()), std::span(buffers.packed).first(bytes));
  } else {
    const auto room = file_.capacity(record).value_or(0);
    if (buffers.packed.size() < std::size_t(room)) buffers.packed.resize(std::size_t(room));
    if (file_.get(record, std::span(buffers.packed)) != entry.bytes())
      refuse_damaged(record, "its size differs from the written one");
  }
  double error = 0;
  if (bytes < sizeof error) refuse_damaged(record, "it is too short");
  std::memcpy(&error, buffers.packed.data(), sizeof error);
  store::unpack(std::span(buffers.packed).first(bytes).subspan(sizeof error), error, numbers);
  const std::lock_guard guard(mutex_);
  counts_.reads.add(entry.bytes());
  if (entry.place < 0) counts_.file_reads.add(entry.bytes());
}

void RecordStore::store(std::int64_t record, const Entry& before, double error,
                        std::span<const double> numbers, Buffers& buffers, bool idle) {
  buffers.packed.resize(
      std::max(buffers.packed.size(), sizeof error + store::max_packed_bytes(numbers.size())));
  std::memcpy(buffers.packed.data(), &error, sizeof error);
  const auto bytes =
      std::int64_t(sizeof error + store::pack(numbers, error, buffers.packed.data() + sizeof error));
  const std::span<const std::byte> packed = std::span(buffers.packed).first(std::size_t(bytes));
  const bool leaves = idle && is_scarce(before.place > 0 ? 0 : bytes);
  const bool stays = !leaves && before.place > 0 && bytes <= space_.capacity_bytes(before.allocation());
  std::optional<RecordSpace::Allocation> room;
  if (stays)
    room = before.allocation();
  else if (!leaves)
    room = space_.take(bytes);
  Entry entry{-1, bytes};
  if (room) {
    entry = {room->granule + 1, bytes | std::int64_t{room->size_class} << 32};
    memory_.put(space_.offset(*room), packed);
  } else {
    file_.put(record, packed);
  }
  set(record, entry);
  if (!stays && before.place > 0) space_.give(before.allocation());
  if (before.place < 0 && entry.place > 0) file_.erase(record);
  const std::lock_guard guard(mutex_);
  counts_.writes.add(bytes);
  if (entry.place < 0) counts_.file_writes.add(bytes);
}

void RecordStore::get(std::span<const std::int64_t> records, std::span<double> numbers) {
  check("read", records, numbers.size());
  Buffers buffers;
  const std::vector<Entry> found = entries(records);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto size = std::size_t(sizes_[std::size_t(records[i])]);
    load(records[i], found[i], numbers.first(size), buffers);
    numbers = numbers.subspan(size);
  }
}

void RecordStore::put(std::span<const std::int64_t> records, double error, std::span<const double> numbers,
                      bool idle) {
  check("write", records, numbers.size());
  Buffers buffers;
  for (const std::int64_t each : records) {
    const auto size = std::size_t(sizes_[std::size_t(each)]);
    store(each, entry(each), error, numbers.first(size), buffers, idle);
    numbers = numbers.subspan(size);
  }
  world_.flush();
}

void RecordStore::add(std::span<const std::int64_t> records, double error, std::span<const double> numbers) {
  check("add to", records, numbers.size());
  Buffers buffers;
  for (const std::int64_t each : records) {
    const auto size = std::size_t(sizes_[std::size_t(each)]);
    buffers.numbers.resize(size);
    {
      const std::lock_guard guard(locks_[std::size_t(each % locks)]);  // whose release flushes
      const Entry before = entry(each);
      load(each, before, buffers.numbers, buffers);
      for (std::size_t i = 0; i < size; ++i) buffers.numbers[i] += numbers[i];
      store(each, before, error, buffers.numbers, buffers, false);
    }
    numbers = numbers.subspan(size);
  }
}

void RecordStore::erase(std::span<const std::int64_t> records) {
  check_open("erase");
  for (const std::int64_t each : records) {
    if (each < 0 || each >= std::ssize(sizes_)) throw std::out_of_range("record");
    const Entry before = entry(each);
    if (before.place == 0) continue;
    set(each, Entry{});
    if (before.place > 0)
      space_.give(before.allocation());
    else
      file_.erase(each);
  }
  world_.flush();
}

}  // namespace outcore::file
