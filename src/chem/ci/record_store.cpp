#include "chem/ci/record_store.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "chem/ci/block_float.hpp"
#include "outcore/error.hpp"

namespace outcore::chem::ci {
namespace {

constexpr std::int64_t smallest_room = 64;
constexpr std::int64_t extents_of_each = 32;  // of memory, that each process takes if all take as many
constexpr std::int64_t neighbours = 4;        // entries that are read for each one that is wanted, at most

/// Room for so many bytes: one of eight sizes between powers of two.
std::int64_t room_for(std::int64_t bytes) {
  if (bytes <= smallest_room) return smallest_room;
  const std::int64_t unit = std::int64_t(std::bit_floor(std::uint64_t(bytes))) / 8;
  return (bytes + unit - 1) / unit * unit;
}

Strided line(const void* data, std::size_t element_bytes) {
  return {static_cast<std::byte*>(const_cast<void*>(data)), row_major(Extents{1}, element_bytes)};
}

Box range(std::int64_t begin, std::int64_t end) {
  return {Extents{begin}, Extents{end}};
}

void check(std::span<const std::int64_t> records, const std::vector<std::int64_t>& sizes,
           std::size_t numbers) {
  std::int64_t sum = 0;
  for (std::int64_t each : records) sum += sizes.at(std::size_t(each));
  if (std::size_t(sum) != numbers)
    throw std::invalid_argument("numbers of another count than the records have");
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

RecordStore::RecordStore(GlobalArray& memory, Counter& taken, GlobalArray& directory, file::RecordFile& file,
                         std::vector<Lock*> locks, std::vector<std::int64_t> sizes, std::int64_t reserve)
    : memory_(memory),
      taken_(taken),
      directory_(directory),
      file_(file),
      locks_(std::move(locks)),
      sizes_(std::move(sizes)),
      reserve_(reserve) {
  if (locks_.empty()) throw std::invalid_argument("a store needs a lock");
  for (std::int64_t each : sizes_)
    if (each < 0 || max_packed_bytes(std::size_t(each)) > 0x7fffffff)
      throw std::invalid_argument("a record of a size that is not possible");
  if (memory.type() != ElementType::uint8 || memory.shape().rank() != 1 ||
      directory.type() != ElementType::int64 || directory.shape().rank() != 1 ||
      directory.shape()[0] < 2 * std::int64_t(sizes_.size()))
    throw std::invalid_argument("memory must be of bytes, the directory of two int64 for each record");
  extent_ = memory.shape()[0] / (extents_of_each * memory.world().size());
}

RecordStore::Entry RecordStore::entry(std::int64_t record) const {
  Entry found{};
  directory_.get(range(2 * record, 2 * record + 2), line(&found, sizeof(std::int64_t)));
  return found;
}

void RecordStore::set(std::int64_t record, const Entry& entry) {
  directory_.put(range(2 * record, 2 * record + 2), line(&entry, sizeof(std::int64_t)));
}

/// Neighbours in one transfer.
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
    directory_.get(range(2 * first, 2 * (first + count)), line(all.data(), sizeof(std::int64_t)));
    for (; i < end; ++i) found.push_back(all[std::size_t(records[i] - first)]);
  }
  return found;
}

RecordStore::Place RecordStore::place(std::int64_t record) const {
  if (record < 0 || record >= std::int64_t(sizes_.size())) throw std::out_of_range("record");
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
  return memory_.shape()[0] - taken_.next(0) + free_bytes_ + end_ - next_ - bytes < reserve_;
}

/// The smallest free room that is large enough; its rest stays free.
bool RecordStore::take(std::int64_t bytes, Entry& entry) {
  const std::int64_t room = room_for(bytes);
  const std::lock_guard guard(mutex_);
  const auto at = by_room_.lower_bound({room, 0});
  if (at != by_room_.end()) {
    const auto [all, begin] = *at;
    unfree(begin, all);
    if (all > room) free(begin + room, all - room);
    entry = {begin + 1, bytes | room << 32};
    return true;
  }
  if (end_ - next_ < room) {
    const std::int64_t all = memory_.shape()[0], extent = std::max(extent_, room);
    auto begin = taken_.next_within(all, extent);
    const std::int64_t size = begin ? extent : room;
    if (!begin) begin = taken_.next_within(all, room);
    if (!begin) return false;
    if (end_ > next_) free(next_, end_ - next_);
    next_ = *begin;
    end_ = next_ + size;
  }
  entry = {next_ + 1, bytes | room << 32};
  next_ += room;
  return true;
}

void RecordStore::give_back(const Entry& entry) {
  const std::lock_guard guard(mutex_);
  free(entry.place - 1, entry.room());
}

/// Together with free neighbours.
void RecordStore::free(std::int64_t begin, std::int64_t room) {
  const auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == begin + room) {
    const auto [at, more] = *after;
    unfree(at, more);
    room += more;
  }
  const auto next = free_.lower_bound(begin);
  if (next != free_.begin()) {
    const auto [at, before] = *std::prev(next);
    if (at + before == begin) {
      unfree(at, before);
      begin = at;
      room += before;
    }
  }
  free_.emplace(begin, room);
  by_room_.emplace(room, begin);
  free_bytes_ += room;
}

void RecordStore::unfree(std::int64_t begin, std::int64_t room) {
  free_.erase(begin);
  by_room_.erase({room, begin});
  free_bytes_ -= room;
}

/// A packed record begins with the error of its numbers.
void RecordStore::load(std::int64_t record, const Entry& entry, std::span<double> numbers, Buffers& buffers) {
  if (entry.place == 0) {
    std::fill(numbers.begin(), numbers.end(), 0.0);
    return;
  }
  const auto bytes = std::size_t(entry.bytes());
  if (entry.place > 0) {
    if (buffers.packed.size() < bytes) buffers.packed.resize(bytes);
    const std::int64_t begin = entry.place - 1;
    memory_.get(range(begin, begin + std::int64_t(bytes)), line(buffers.packed.data(), 1));
  } else {
    const auto room = file_.capacity(record).value_or(0);
    if (buffers.packed.size() < std::size_t(room)) buffers.packed.resize(std::size_t(room));
    const std::int64_t found = file_.get(record, std::span(buffers.packed));
    if (found != std::int64_t(bytes))
      throw Error(EIO, {.attempted = "read a record", .detail = "it is of another size than was written"});
  }
  double error = 0;
  if (bytes < sizeof error) throw Error(EIO, {.attempted = "read a record", .detail = "it is too short"});
  std::memcpy(&error, buffers.packed.data(), sizeof error);
  unpack(std::span(buffers.packed).first(bytes).subspan(sizeof error), error, numbers);
  const std::lock_guard guard(mutex_);
  counts_.reads.add(std::int64_t(bytes));
  if (entry.place < 0) counts_.file_reads.add(std::int64_t(bytes));
}

void RecordStore::store(std::int64_t record, Entry entry, double error, std::span<const double> numbers,
                        Buffers& buffers, bool idle) {
  buffers.packed.resize(std::max(buffers.packed.size(), sizeof error + max_packed_bytes(numbers.size())));
  std::memcpy(buffers.packed.data(), &error, sizeof error);
  const auto bytes = std::int64_t(sizeof error + pack(numbers, error, buffers.packed.data() + sizeof error));
  const std::span<const std::byte> packed = std::span(buffers.packed).first(std::size_t(bytes));
  const Entry before = entry;
  const bool leaves = idle && is_scarce(before.place > 0 ? 0 : bytes);
  const bool stays = !leaves && before.place > 0 && bytes <= before.room();
  if (stays) entry.extent = bytes | before.room() << 32;
  if (stays || (!leaves && take(bytes, entry))) {
    memory_.put(range(entry.place - 1, entry.place - 1 + bytes), line(packed.data(), 1));
  } else {
    file_.put(record, packed);
    entry = {-1, bytes};
  }
  set(record, entry);
  if (!stays && before.place > 0) give_back(before);
  if (before.place < 0 && entry.place > 0) file_.erase(record);
  const std::lock_guard guard(mutex_);
  counts_.writes.add(bytes);
  if (entry.place < 0) counts_.file_writes.add(bytes);
}

void RecordStore::get(std::span<const std::int64_t> records, std::span<double> numbers) {
  check(records, sizes_, numbers.size());
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
  check(records, sizes_, numbers.size());
  Buffers buffers;
  for (std::int64_t each : records) {
    const auto size = std::size_t(sizes_[std::size_t(each)]);
    store(each, entry(each), error, numbers.first(size), buffers, idle);
    numbers = numbers.subspan(size);
  }
}

void RecordStore::add(std::span<const std::int64_t> records, double error, std::span<const double> numbers) {
  check(records, sizes_, numbers.size());
  Buffers buffers;
  for (std::int64_t each : records) {
    const auto size = std::size_t(sizes_[std::size_t(each)]);
    buffers.numbers.resize(size);
    {
      const std::lock_guard guard(*locks_[std::size_t(each) % locks_.size()]);
      const Entry before = entry(each);
      load(each, before, buffers.numbers, buffers);
      for (std::size_t i = 0; i < size; ++i) buffers.numbers[i] += numbers[i];
      store(each, before, error, buffers.numbers, buffers, false);
    }
    numbers = numbers.subspan(size);
  }
}

void RecordStore::erase(std::span<const std::int64_t> records) {
  for (std::int64_t each : records) {
    if (each < 0 || each >= std::int64_t(sizes_.size())) throw std::out_of_range("record");
    const Entry before = entry(each);
    if (before.place == 0) continue;
    set(each, Entry{});
    if (before.place > 0)
      give_back(before);
    else
      file_.erase(each);
  }
}

}  // namespace outcore::chem::ci
