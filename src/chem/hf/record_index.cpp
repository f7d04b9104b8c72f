#include "chem/hf/record_index.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <tuple>

#include "chem/hf/packing.hpp"
#include "chem/hf/record_disk.hpp"
#include "outcore/error.hpp"
#include "store/checksum.hpp"

namespace outcore::chem {
namespace {

Error damaged(const std::string& path, const std::string& what) {
  return Error(EIO, {.attempted = "index of integrals", .path = path, .detail = "damaged: " + what});
}

/// Writes and reads the numbers of an index, one after the other.
template <class T>
void put(std::vector<std::byte>& out, const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), from, from + sizeof value);
}

void put(std::vector<std::byte>& out, const std::vector<SlabRange>& ranges) {
  put(out, std::uint64_t(ranges.size()));
  for (const SlabRange& range : ranges) {
    put(out, range.task);
    put(out, std::uint8_t(range.small));
    put(out, std::uint8_t(range.whole));
    put(out, range.first);
    put(out, range.count);
  }
}

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  template <class T>
  T take() {
    T value;
    if (bytes_.size() < sizeof value) throw damaged(path_, "it is too short");
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }

  bool flag() {
    const auto value = take<std::uint8_t>();
    if (value > 1) throw damaged(path_, "a flag of " + std::to_string(value));
    return value == 1;
  }

  std::vector<SlabRange> ranges() {
    std::vector<SlabRange> ranges;
    for (auto count = take<std::uint64_t>(); count > 0; --count) {
      SlabRange range;
      range.task = take<std::uint32_t>();
      range.small = flag();
      range.whole = flag();
      range.first = take<std::uint32_t>();
      range.count = take<std::uint32_t>();
      if (range.count > std::numeric_limits<std::uint32_t>::max() - range.first)
        throw damaged(path_, "a range of " + std::to_string(range.count) + " slabs from number " +
                                 std::to_string(range.first) + " on");
      ranges.push_back(range);
    }
    return ranges;
  }

  [[nodiscard]] bool at_end() const noexcept { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
};

void check(const IndexedRecord& record, std::size_t record_bytes, const std::string& path) {
  const auto last = std::numeric_limits<std::int64_t>::max() / std::int64_t(record_bytes) - 1;
  if (record.number < 0 || record.number > last)
    throw damaged(path, "a record in place " + std::to_string(record.number));
  if (whole_pages(record.used) > record_bytes)
    throw damaged(path, "a record of " + std::to_string(record.used) + " bytes");
  if (record.slabs > record.used / sizeof(PackedSlab))
    throw damaged(path, std::to_string(record.slabs) + " slabs in " + std::to_string(record.used) + " bytes");
  if (record.integrals > record.used)  // each has a byte at least
    throw damaged(
        path, std::to_string(record.integrals) + " integrals in " + std::to_string(record.used) + " bytes");
  if (!std::isfinite(record.bound) || record.bound < 0) throw damaged(path, "a bound that is none");
}

}  // namespace

std::vector<std::byte> RecordIndex::bytes() const {
  std::vector<std::byte> index;
  put(index, std::uint64_t(records.size()));
  for (const IndexedRecord& record : records) {
    put(index, record.number);
    put(index, record.slabs);
    put(index, record.integrals);
    put(index, record.used);
    put(index, record.checksum);
    put(index, record.bound);
    put(index, record.ranges);
  }
  put(index, lost);
  return index;
}

RecordIndex RecordIndex::parse(std::span<const std::byte> bytes, std::size_t record_bytes,
                               const std::string& path) {
  Reader reader(bytes, path);
  RecordIndex index;
  for (auto count = reader.take<std::uint64_t>(); count > 0; --count) {
    IndexedRecord record;
    record.number = reader.take<std::int64_t>();
    record.slabs = reader.take<std::uint32_t>();
    record.integrals = reader.take<std::uint64_t>();
    record.used = reader.take<std::uint32_t>();
    record.checksum = reader.take<std::uint32_t>();
    record.bound = reader.take<double>();
    record.ranges = reader.ranges();
    check(record, record_bytes, path);
    index.records.push_back(std::move(record));
  }
  index.lost = reader.ranges();
  if (!reader.at_end()) throw damaged(path, "it is too long");

  std::vector<std::int64_t> places;
  for (const IndexedRecord& record : index.records) places.push_back(record.number);
  std::ranges::sort(places);
  if (const auto twice = std::ranges::adjacent_find(places); twice != places.end())
    throw damaged(path, "two records in place " + std::to_string(*twice));
  return index;
}

void check_ranges(std::span<const RecordIndex> indices, std::size_t tasks) {
  std::vector<SlabRange> all;
  for (const RecordIndex& index : indices) {
    for (const IndexedRecord& record : index.records)
      all.insert(all.end(), record.ranges.begin(), record.ranges.end());
    all.insert(all.end(), index.lost.begin(), index.lost.end());
  }
  const auto key = [](const SlabRange& range) { return std::tuple(range.task, range.small, range.first); };
  std::ranges::sort(all, {}, key);
  const auto name = [](const SlabRange& range) {
    return std::string(range.small ? "small" : "large") + " slabs of task " + std::to_string(range.task);
  };
  for (std::size_t at = 0; at < all.size(); ++at) {
    const SlabRange& range = all[at];
    if (range.task >= tasks)
      throw damaged("", "task " + std::to_string(range.task) + " of " + std::to_string(tasks));
    const bool first = at == 0 || all[at - 1].task != range.task || all[at - 1].small != range.small;
    const std::uint32_t expected = first ? 0 : all[at - 1].first + all[at - 1].count;
    if (range.first != expected || (!first && (range.whole || all[at - 1].whole)))
      throw damaged("", name(range) + ": number " + std::to_string(range.first) + " where " +
                            std::to_string(expected) + " is expected");
  }
}

std::vector<std::string> damaged_records(std::span<const std::byte> index, std::size_t record_bytes,
                                         const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ENOENT, {.attempted = "read kept integrals", .path = path});
  std::vector<std::string> found;
  std::vector<std::byte> record;
  for (const IndexedRecord& each : RecordIndex::parse(index, record_bytes, path).records) {
    record.assign(whole_pages(each.used), std::byte{});
    const auto at = each.number * static_cast<std::int64_t>(record_bytes);
    file.clear();
    file.seekg(at);
    file.read(reinterpret_cast<char*>(record.data()), static_cast<std::streamsize>(record.size()));
    if (!file || store::crc32c(record) != each.checksum)
      found.push_back(path + ": the record of " + std::to_string(each.used) + " bytes at offset " +
                      std::to_string(at));
  }
  return found;
}

}  // namespace outcore::chem
