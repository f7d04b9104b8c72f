#include "chem/hf/integral_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "chem/hf/record_disk.hpp"
#include "chem/hf/record_index.hpp"
#include "outcore/error.hpp"
#include "store/checksum.hpp"

namespace outcore::chem {
namespace {

constexpr std::size_t min_record_bytes = 1 << 16;

IntegralFileOptions checked(IntegralFileOptions options) {
  if (options.record_bytes < min_record_bytes || options.record_bytes != whole_pages(options.record_bytes) ||
      options.record_bytes >> 32)
    throw Error(EINVAL,
                {.attempted = "integral file",
                 .detail = "records must be a multiple of 4096 bytes from 64 KiB to below 4 GiB, not " +
                           std::to_string(options.record_bytes)});
  if (options.prefetch < 2)
    throw Error(EINVAL,
                {.attempted = "integral file",
                 .detail = "at least 2 records are read ahead, not " + std::to_string(options.prefetch)});
  return options;
}

bool means_full(const Error& error) {
  const int code = error.errno_value();
  return code == ENOSPC || code == EDQUOT || code == EFBIG;
}

}  // namespace

IntegralFile::IntegralFile(const Basis& basis, const IntegralFileOptions& options)
    : basis_(basis),
      options_(checked(options)),
      disk_(options.world && options.kept_name.empty() ? file_of_all(options) : own_file(options)) {}

IntegralFile::IntegralFile(const Basis& basis, const IntegralFileOptions& options,
                           std::span<const KeptFile> kept, std::size_t tasks, int part, int parts)
    : basis_(basis), options_(checked(options)), disk_(kept_files(options, kept)), removes_(false) {
  std::vector<RecordIndex> indices;
  for (std::size_t file = 0; file < kept.size(); ++file)
    indices.push_back(
        RecordIndex::parse(kept[file].index, options_.record_bytes, disk_->path(std::uint32_t(file))));
  check_ranges(indices, tasks);
  std::uint64_t count = 0;
  for (std::size_t file = 0; file < kept.size(); ++file) {
    know(std::move(indices[file].records), std::uint32_t(file),
         [&] { return int(count++ % std::uint64_t(parts)) == part; });
    for (const SlabRange& range : indices[file].lost)
      if (int(range.task % std::uint32_t(parts)) == part) lost_.push_back(range);
  }
}

IntegralFile::~IntegralFile() {
  if (options_.world && options_.kept_name.empty()) return;  // collective: the others may not call it now
  try {
    drop();
  } catch (
      const std::exception&) {  // scratch vanishes with the process at the latest, kept files can be removed
  }
}

void IntegralFile::drop() {
  if (std::exchange(removes_, false)) disk_->drop();
}

const std::string& IntegralFile::path() const {
  return disk_->path(0);
}

std::vector<std::byte> IntegralFile::index() const {
  const std::lock_guard lock(mutex_);
  RecordIndex index{.records = {}, .lost = lost_};
  for (const Record& record : records_)
    if (record.mine && !record.lost && !record.memory.data()) index.records.push_back(record);
  return index.bytes();
}

/// Takes the records of an index; those that are not `mine` only if all processes read all records.
void IntegralFile::know(std::vector<IndexedRecord> records, std::uint32_t file,
                        const std::function<bool()>& mine) {
  for (IndexedRecord& indexed : records) {
    Record record(std::move(indexed));
    record.file = file;
    record.mine = mine();
    if (!record.mine && !options_.world) continue;
    if (record.mine) used_[1] += std::int64_t(whole_pages(record.used));
    records_.push_back(std::move(record));
  }
}

void IntegralFile::share(std::span<const std::vector<std::byte>> indices) {
  const std::lock_guard lock(mutex_);
  std::erase_if(records_, [](const Record& record) { return !record.lost && !record.memory.data(); });
  used_[1] = 0;
  // Each process keeps its own lost tasks: `lost_` does not change.
  for (std::size_t rank = 0; rank < indices.size(); ++rank)
    know(RecordIndex::parse(indices[rank], options_.record_bytes, disk_->path(0)).records, 0,
         [&] { return int(rank) == options_.world->rank(); });
}

KeptFile IntegralFile::commit() {
  KeptFile kept{options_.kept_name, index()};
  disk_->flush();
  removes_ = false;
  return kept;
}

std::size_t IntegralFile::work_bytes(const IntegralFileOptions& options, int threads) {
  const auto writing = std::size_t(threads) * 3 * (options.small_below > 0 ? 2 : 1) * options.record_bytes;
  const auto reading = std::size_t(threads + options.prefetch) * options.record_bytes;
  return std::max(writing, reading) + std::size_t(threads) * 2 * Slab::max_values * sizeof(double);
}

IntegralFile::Medium IntegralFile::reserve(std::size_t length) {
  const std::lock_guard lock(mutex_);
  const auto size = std::int64_t(length);
  auto& [in_memory, on_disk] = used_;
  if (in_memory + size <= options_.memory_bytes) {
    in_memory += size;
    return Medium::memory;
  }
  if ((options_.disk_used ? options_.disk_used->next(size) : on_disk) + size <= options_.disk_bytes) {
    on_disk += size;
    return Medium::disk;
  }
  if (options_.disk_used) options_.disk_used->next(-size);
  full_ = true;
  return Medium::nowhere;
}

IntegralFile::Record& IntegralFile::keep(Record&& record, Medium medium) {
  const std::lock_guard lock(mutex_);
  if (medium == Medium::disk) record.number = disk_->locate(next_++).number;
  return records_.emplace_back(std::move(record));
}

/// `medium`: where space was expected.
void IntegralFile::lose(Record& record, Medium medium) {
  const std::lock_guard lock(mutex_);
  const auto size = std::int64_t(whole_pages(record.used));
  if (medium != Medium::nowhere) used_[std::size_t(medium)] -= size;
  if (medium == Medium::disk && options_.disk_used) options_.disk_used->next(-size);
  record.lost = true;
  lost_.insert(lost_.end(), record.ranges.begin(), record.ranges.end());
}

void IntegralFile::found_damaged(Record& record) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(record.damaged, true)) ++damaged_;
  damaged_ranges_.insert(damaged_ranges_.end(), record.ranges.begin(), record.ranges.end());
}

void IntegralFile::lose(std::uint32_t task) {
  const std::lock_guard lock(mutex_);
  for (const bool small : {false, true}) lost_.push_back({.task = task, .small = small, .whole = true});
}

std::size_t IntegralFile::records() const {
  const std::lock_guard lock(mutex_);
  return std::size_t(
      std::ranges::count_if(records_, [](const Record& record) { return record.mine && !record.lost; }));
}

std::uint64_t IntegralFile::integrals() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const Record& record : records_)
    if (record.mine && !record.lost) sum += record.integrals;
  return sum;
}

std::vector<SlabRange> IntegralFile::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

std::vector<SlabRange> IntegralFile::take_damaged() {
  const std::lock_guard lock(mutex_);
  return std::exchange(damaged_ranges_, {});
}

/// The records of large or of small slabs: one is being filled, two are being written.
struct IntegralFile::Writer::Stream {
  static constexpr std::size_t count = 3;
  device::Buffer buffers[count];
  Request requests[count];
  Record* records[count] = {};  // the records that the requests write
  std::size_t current = 0;
  std::size_t used = 0;
  Record next;              // the record that is being filled
  std::uint32_t added = 0;  // slabs of the present task
};

IntegralFile::Writer::Writer(IntegralFile& file) : file_(file), codec_(*file.options_.accuracy) {}

// The buffers go back to the pool: nothing may be written from them any more.
IntegralFile::Writer::~Writer() {
  for (const auto& stream : streams_) {
    if (!stream) continue;
    for (auto& request : stream->requests) try {
        request.wait();
      } catch (const std::exception&) {  // documented; memory may be short, too
      }
  }
}

void IntegralFile::Writer::begin(std::uint32_t task) {
  end_task();
  task_ = task;
}

// Ranges that begin and end with the task hold all of it.
void IntegralFile::Writer::end_task() {
  for (const auto& stream : streams_) {
    if (!stream) continue;
    auto& ranges = stream->next.ranges;
    if (!ranges.empty() && ranges.back().task == task_ && ranges.back().first == 0)
      ranges.back().whole = true;
    stream->added = 0;
  }
}

void IntegralFile::Writer::add(const Slab& slab) {
  auto& stream = streams_[slab.small ? 1 : 0];
  const std::size_t record_bytes = file_.options_.record_bytes;
  if (!stream) {
    stream = std::make_unique<Stream>();
    for (auto& buffer : stream->buffers) buffer = device::Buffer(record_bytes);
  }
  const std::size_t bound = SlabCodec::packed_bound(slab);
  if (bound > record_bytes)
    throw Error(EMSGSIZE,
                {.attempted = "integral record",
                 .detail = "a slab of " + std::to_string(bound) + " bytes does not fit into a record of " +
                           std::to_string(record_bytes) + "; use larger records"});
  const std::uint64_t before = codec_.stored_integrals();
  std::size_t bytes = 0;
  if (stream->used + bound <= record_bytes) {
    bytes = codec_.pack(file_.basis_, slab, stream->buffers[stream->current].data() + stream->used);
  } else {  // it may fit all the same: most slabs need much less than the bound
    aside_.resize(bound);
    bytes = codec_.pack(file_.basis_, slab, aside_.data());
    if (stream->used + bytes > record_bytes) write_record(*stream);
    std::memcpy(stream->buffers[stream->current].data() + stream->used, aside_.data(), bytes);
  }
  stream->used += bytes;

  Record& record = stream->next;
  auto& ranges = record.ranges;
  if (ranges.empty() || ranges.back().task != task_)
    ranges.push_back(
        {.task = task_, .small = slab.small, .whole = false, .first = stream->added, .count = 0});
  ++ranges.back().count;
  ++stream->added;
  if (bytes == 0) return;
  ++record.slabs;
  record.integrals += codec_.stored_integrals() - before;
  record.bound = std::max(record.bound, slab.bound);
}

void IntegralFile::Writer::write_record(Stream& stream) {
  device::Buffer& buffer = stream.buffers[stream.current];
  const std::size_t length = whole_pages(stream.used);
  std::memset(buffer.data() + stream.used, 0, length - stream.used);
  stream.next.used = std::uint32_t(stream.used);
  stream.next.checksum = store::crc32c(buffer.span().first(length));
  const Medium medium = file_.reserve(length);
  Record& record = file_.keep(std::exchange(stream.next, {}), medium);
  stream.used = 0;
  if (medium == Medium::nowhere) {
    file_.lose(record, medium);
    return;
  }
  if (medium == Medium::memory) {
    record.memory = std::exchange(buffer, device::Buffer(file_.options_.record_bytes));
    return;
  }
  stream.records[stream.current] = &record;
  stream.requests[stream.current] =
      file_.disk_->write_async(buffer.span().first(length), {.file = 0, .number = record.number});
  stream.current = (stream.current + 1) % Stream::count;
  wait(stream, stream.current);  // the oldest write; its buffer is filled next
}

void IntegralFile::Writer::wait(Stream& stream, std::size_t which) {
  try {
    std::exchange(stream.requests[which], {}).wait();
  } catch (const Error& error) {
    if (!file_.options_.may_overflow || !means_full(error)) throw;
    file_.lose(*stream.records[which], Medium::disk);
    file_.full_ = true;
  }
}

void IntegralFile::Writer::finish() {
  end_task();
  for (const auto& stream : streams_) {
    if (!stream) continue;
    if (!stream->next.ranges.empty()) write_record(*stream);
    for (std::size_t which = 0; which < Stream::count; ++which) wait(*stream, which);
  }
}

}  // namespace outcore::chem
