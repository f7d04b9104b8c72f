#include "outcore/chem/integral_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <thread>

#include "outcore/error.hpp"
#include "outcore/store/checksum.hpp"

namespace outcore::chem {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t least_record = 1 << 16;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page - 1) / page * page;
}

IntegralFileOptions checked(IntegralFileOptions options) {
  if (options.record_bytes < least_record || options.record_bytes % page != 0 || options.record_bytes >> 32)
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

/// Names of exclusive files are of the process, which may hold the integrals of several molecules.
std::string new_name() {
  static std::atomic<std::uint64_t> count{0};
  return "integrals." + std::to_string(count++);
}

/// Writes and reads the numbers of an index, one after the other.
template <class T>
void put(std::vector<std::byte>& out, const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), from, from + sizeof value);
}

template <class T>
T take(std::span<const std::byte>& in) {
  T value;
  if (in.size() < sizeof value)
    throw Error(EIO, {.attempted = "kept integrals", .detail = "damaged: their index is too short"});
  std::memcpy(&value, in.data(), sizeof value);
  in = in.subspan(sizeof value);
  return value;
}

bool means_full(const Error& error) {
  const int code = error.errno_value();
  return code == ENOSPC || code == EDQUOT || code == EFBIG;
}

}  // namespace

IntegralFile::IntegralFile(const Basis& basis, const IntegralFileOptions& options)
    : basis_(basis), options_(checked(options)) {
  auto with = options.file;
  with.keep = !options.kept_name.empty();
  files_.emplace_back(with.keep ? options.kept_name : new_name(), with);
}

IntegralFile::IntegralFile(const Basis& basis, const IntegralFileOptions& options,
                           std::span<const KeptFile> kept, int part, int parts)
    : basis_(basis), options_(checked(options)), committed_(true) {
  auto with = options.file;
  with.keep = true;
  std::uint64_t count = 0;
  for (const KeptFile& each : kept) {
    if (const auto path = with.scratch + "/" + each.name; !std::filesystem::exists(path))
      throw Error(
          ENOENT,
          {.attempted = "reuse kept integrals", .path = path, .detail = "this file of them is missing"});
    const auto file = std::uint32_t(files_.size());
    files_.emplace_back(each.name, with);
    std::span<const std::byte> in = each.index;
    for (auto records = take<std::uint64_t>(in); records > 0; --records, ++count) {
      Record record;
      record.file = file;
      record.number = take<std::int64_t>(in);
      record.slabs = take<std::uint32_t>(in);
      record.integrals = take<std::uint64_t>(in);
      record.used = take<std::uint32_t>(in);
      if (whole_pages(record.used) > options_.record_bytes)
        throw Error(EIO, {.attempted = "kept integrals",
                          .path = files_.back().path(),
                          .detail = "damaged: a record of " + std::to_string(record.used) + " bytes"});
      record.checksum = take<std::uint32_t>(in);
      record.bound = take<double>(in);
      for (auto ranges = take<std::uint64_t>(in); ranges > 0; --ranges) {
        SlabRange& range = record.ranges.emplace_back();
        range.task = take<std::uint32_t>(in);
        range.small = take<bool>(in);
        range.whole = take<bool>(in);
        range.first = take<std::uint32_t>(in);
        range.count = take<std::uint32_t>(in);
      }
      if (int(count % std::uint64_t(parts)) != part) continue;
      used_[1] += std::int64_t(whole_pages(record.used));
      records_.push_back(std::move(record));
    }
  }
}

IntegralFile::~IntegralFile() {
  if (committed_) return;
  try {
    for (auto& file : files_) file.erase();
  } catch (const Error&) {  // scratch vanishes with the process at the latest, kept files can be removed
  }
}

KeptFile IntegralFile::commit() {
  KeptFile kept{options_.kept_name, {}};
  put(kept.index, std::uint64_t(records_.size()));
  for (const Record& record : records_) {
    if (record.lost)
      throw Error(ENOSPC,
                  {.attempted = "keep integrals", .path = path(), .detail = "not all of them found a place"});
    put(kept.index, record.number);
    put(kept.index, record.slabs);
    put(kept.index, record.integrals);
    put(kept.index, record.used);
    put(kept.index, record.checksum);
    put(kept.index, record.bound);
    put(kept.index, std::uint64_t(record.ranges.size()));
    for (const SlabRange& range : record.ranges) {
      put(kept.index, range.task);
      put(kept.index, range.small);
      put(kept.index, range.whole);
      put(kept.index, range.first);
      put(kept.index, range.count);
    }
  }
  files_.front().flush();
  committed_ = true;
  return kept;
}

std::size_t IntegralFile::work_bytes(const IntegralFileOptions& options, int threads) {
  const auto writing = std::size_t(threads) * 3 * (options.small_below > 0 ? 2 : 1) * options.record_bytes;
  const auto reading = std::size_t(threads + options.prefetch) * options.record_bytes;
  return std::max(writing, reading) + std::size_t(threads) * 2 * Slab::most_values * sizeof(double);
}

IntegralFile::Place IntegralFile::reserve(std::size_t length) {
  const std::lock_guard lock(mutex_);
  const std::int64_t limits[] = {options_.memory_bytes, options_.disk_bytes};
  for (const auto place : {Place::memory, Place::disk}) {
    auto& used = used_[std::size_t(place)];
    if (used + std::int64_t(length) > limits[std::size_t(place)]) continue;
    used += std::int64_t(length);
    return place;
  }
  full_ = true;
  return Place::nowhere;
}

IntegralFile::Record& IntegralFile::keep(Record&& record, Place place) {
  const std::lock_guard lock(mutex_);
  if (place == Place::disk) record.number = next_++;
  return records_.emplace_back(std::move(record));
}

void IntegralFile::lose(Record& record) {
  const std::lock_guard lock(mutex_);
  record.lost = true;
  lost_.insert(lost_.end(), record.ranges.begin(), record.ranges.end());
}

void IntegralFile::lose(std::uint32_t task) {
  const std::lock_guard lock(mutex_);
  for (const bool small : {false, true}) lost_.push_back({.task = task, .small = small, .whole = true});
}

std::size_t IntegralFile::records() const {
  const std::lock_guard lock(mutex_);
  return std::size_t(std::ranges::count(records_, false, &Record::lost));
}

std::uint64_t IntegralFile::integrals() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const Record& record : records_)
    if (!record.lost) sum += record.integrals;
  return sum;
}

std::vector<SlabRange> IntegralFile::take_lost() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lost_, {});
}

/// Records of large or of small slabs, one being filled, two being written.
struct IntegralFile::Writer::Stream {
  static constexpr std::size_t count = 3;
  device::Buffer buffers[count];
  device::Request requests[count];
  Record* records[count] = {};  // that the requests are about
  std::size_t current = 0;
  std::size_t used = 0;
  Record next;              // what is being filled
  std::uint32_t added = 0;  // slabs of the present task
};

IntegralFile::Writer::Writer(IntegralFile& file) : file_(file), codec_(*file.options_.accuracy) {}

// The buffers go back to the pool: nothing may be written from them any more.
IntegralFile::Writer::~Writer() {
  for (const auto& stream : streams_) {
    if (!stream) continue;
    try {
      device::wait_all(stream->requests);
    } catch (const Error&) {  // documented
    }
  }
}

void IntegralFile::Writer::begin(std::uint32_t task) {
  end_task();
  task_ = task;
}

// Ranges that begin with the task and end with it hold all of it.
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
  } else {  // it may fit nevertheless: most slabs need much less than the bound
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
  const Place place = file_.reserve(length);
  Record& record = file_.keep(std::exchange(stream.next, {}), place);
  stream.used = 0;
  if (place == Place::nowhere) {
    file_.lose(record);
    return;
  }
  if (place == Place::memory) {
    record.memory = std::exchange(buffer, device::Buffer(file_.options_.record_bytes));
    return;
  }
  const auto offset = record.number * std::int64_t(file_.options_.record_bytes);
  stream.records[stream.current] = &record;
  stream.requests[stream.current] = file_.files_.front().async_write(buffer.span().first(length), offset);
  stream.current = (stream.current + 1) % Stream::count;
  wait(stream, stream.current);  // the oldest write; its buffer is filled next
}

void IntegralFile::Writer::wait(Stream& stream, std::size_t which) {
  try {
    std::exchange(stream.requests[which], {}).wait();
  } catch (const Error& error) {
    if (!file_.options_.may_overflow || !means_full(error)) throw;
    file_.lose(*stream.records[which]);
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

/// One pass over the records. Record r on disk passes through slot r % slots; whoever has contracted it
/// starts the read of record r + slots there, so reading is always `prefetch` records ahead of the last one
/// taken. While a read is under way, records in memory are contracted.
class IntegralPass {
 public:
  using Record = IntegralFile::Record;

  IntegralPass(IntegralFile& file, int threads, double least) : file_(file) {
    for (Record& record : file.records_)
      if (!record.lost && record.slabs > 0 && record.bound >= least)
        (record.memory.data() ? in_memory_ : on_disk_).push_back(&record);
    slots_ = std::vector<Slot>(
        std::min(on_disk_.size(), std::size_t(threads) + std::size_t(file.options_.prefetch)));
    for (std::size_t r = 0; r < slots_.size(); ++r) {
      slots_[r].buffer = device::Buffer(file.options_.record_bytes);
      start(r);
    }
  }

  void run(int thread, const std::function<void(int, const Slab&)>& consume) {
    try {
      Slab slab;
      const auto use = [&] { consume(thread, slab); };
      for (std::size_t r; (r = next_on_disk_.fetch_add(1)) < on_disk_.size();) {
        Slot& slot = slots_[r % slots_.size()];
        while (!(slot.started.load() == r + 1 && slot.request.done()) && contract_from_memory(slab, use)) {
        }
        for (std::size_t started; (started = slot.started.load()) != r + 1;) {
          if (failed_) return;
          slot.started.wait(started);
        }
        if (failed_) return;
        if (arrived(*on_disk_[r], slot)) unpack(*on_disk_[r], slot.buffer, slab, use);
        if (r + slots_.size() < on_disk_.size()) start(r + slots_.size());
      }
      while (contract_from_memory(slab, use)) {
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Slot {
    device::Buffer buffer;
    device::Request request;
    std::atomic<std::size_t> started{0};  // 1 + the record whose read is under way here

    Slot() = default;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    // Nothing may be read into the buffer once it is gone, also when the pass or its beginning has failed.
    ~Slot() {
      try {
        request.wait();
      } catch (const Error&) {  // the pass has failed already, or this read was not wanted any more
      }
    }
  };

  void start(std::size_t r) {
    Slot& slot = slots_[r % slots_.size()];
    const Record& record = *on_disk_[r];
    slot.request =
        file_.files_[record.file].async_read(slot.buffer.span().first(whole_pages(record.used)),
                                             record.number * std::int64_t(file_.options_.record_bytes));
    slot.started = r + 1;
    slot.started.notify_all();
  }

  /// False if the record is not what was written: it is lost then.
  bool arrived(Record& record, Slot& slot) {
    try {
      const auto length = std::size_t(slot.request.wait());
      if (length == whole_pages(record.used) &&
          store::crc32c(slot.buffer.span().first(length)) == record.checksum)
        return true;
    } catch (const Error& error) {
      if (error.errno_value() != EIO) throw;
    }
    ++file_.damaged_;
    file_.lose(record);
    return false;
  }

  template <class Use>
  bool contract_from_memory(Slab& slab, Use&& use) {
    const std::size_t at =
        next_in_memory_.load() < in_memory_.size() ? next_in_memory_.fetch_add(1) : in_memory_.size();
    if (at >= in_memory_.size() || failed_) return false;
    unpack(*in_memory_[at], in_memory_[at]->memory, slab, use);
    return true;
  }

  template <class Use>
  void unpack(const Record& record, const device::Buffer& buffer, Slab& slab, Use&& use) const {
    std::size_t at = 0;
    for (std::uint32_t s = 0; s < record.slabs; ++s) {
      at += SlabCodec::unpack(file_.basis_, buffer.data() + at, record.used - at, slab);
      use();
    }
  }

  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
    for (Slot& slot : slots_) {
      slot.started = 0;  // wakes those who wait for a read that will not come
      slot.started.notify_all();
    }
  }

  IntegralFile& file_;
  std::vector<Record*> in_memory_, on_disk_;
  std::vector<Slot> slots_;
  std::atomic<std::size_t> next_in_memory_{0}, next_on_disk_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

void IntegralFile::for_each(int threads, const std::function<void(int, const Slab&)>& consume, double least) {
  IntegralPass pass(*this, threads, least);
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back([&, t] { pass.run(t, consume); });
    pass.run(0, consume);
  }
  pass.rethrow();
}

}  // namespace outcore::chem
