#include "outcore/chem/integral_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>

#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

constexpr std::uint32_t record_magic = 0x4943434f;  // "OCCI"
constexpr std::size_t page = 4096;
constexpr std::size_t least_record = 1 << 16;

struct RecordHead {
  std::uint32_t magic, slabs;
  std::uint64_t number;  ///< position in the file, so that a misplaced record is noticed
  std::uint64_t used;    ///< bytes, this header included
  double step;
};

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

}  // namespace

IntegralFile::IntegralFile(const Basis& basis, const IntegralFileOptions& options)
    : basis_(basis), options_(checked(options)), file_("integrals", options.file) {}

std::size_t IntegralFile::memory_bytes(const IntegralFileOptions& options, int threads) {
  const auto writing = std::size_t(threads) * 3 * options.record_bytes;
  const auto reading = std::size_t(threads + options.prefetch) * options.record_bytes;
  return std::max(writing, reading) + std::size_t(threads) * 2 * Slab::most_values * sizeof(double);
}

std::int64_t IntegralFile::new_record(std::size_t used) {
  const std::lock_guard lock(mutex_);
  lengths_.push_back(std::uint32_t(used));
  bytes_ += std::int64_t(used);
  return std::int64_t(lengths_.size() - 1);
}

IntegralFile::Writer::Writer(IntegralFile& file) : file_(file), codec_(file.options_.step) {
  for (auto& buffer : buffers_) buffer = device::Buffer(file.options_.record_bytes);
  used_ = sizeof(RecordHead);
}

// The buffers go back to the pool: nothing may be written from them any more.
IntegralFile::Writer::~Writer() {
  try {
    device::wait_all(requests_);
  } catch (const Error&) {  // documented
  }
}

void IntegralFile::Writer::add(const Slab& slab) {
  const std::size_t bound = SlabCodec::packed_bound(slab);
  const std::size_t record_bytes = file_.options_.record_bytes;
  if (sizeof(RecordHead) + bound > record_bytes)
    throw Error(EMSGSIZE,
                {.attempted = "integral record",
                 .detail = "a slab of " + std::to_string(bound) + " bytes does not fit into a record of " +
                           std::to_string(record_bytes) + "; use larger records"});
  std::size_t bytes = 0;
  if (used_ + bound <= record_bytes) {
    bytes = codec_.pack(file_.basis_, slab, buffers_[current_].data() + used_);
  } else {  // it may fit nevertheless: most slabs need much less than the bound
    aside_.resize(bound);
    bytes = codec_.pack(file_.basis_, slab, aside_.data());
    if (used_ + bytes > record_bytes) write_record();
    std::memcpy(buffers_[current_].data() + used_, aside_.data(), bytes);
  }
  used_ += bytes;
  slabs_ += bytes > 0;
}

void IntegralFile::Writer::write_record() {
  device::Buffer& buffer = buffers_[current_];
  const std::size_t length = whole_pages(used_);
  std::memset(buffer.data() + used_, 0, length - used_);
  const std::int64_t number = file_.new_record(length);
  const RecordHead head{record_magic, slabs_, std::uint64_t(number), used_, codec_.step()};
  std::memcpy(buffer.data(), &head, sizeof head);
  requests_[current_] = file_.file_.async_write(buffer.span().first(length),
                                                number * std::int64_t(file_.options_.record_bytes));
  current_ = (current_ + 1) % buffers;
  requests_[current_].wait();  // the oldest write; its buffer is filled next
  used_ = sizeof(RecordHead);
  slabs_ = 0;
}

void IntegralFile::Writer::finish() {
  if (slabs_ > 0) write_record();
  device::wait_all(requests_);
}

/// One pass over the records. Record r passes through slot r % slots; whoever has contracted it starts the
/// read of record r + slots there, so reading is always `prefetch` records ahead of the last one taken.
class Reader {
 public:
  Reader(IntegralFile& file, int threads)
      : file_(file),
        slots_(std::min(file.records(), std::size_t(threads) + std::size_t(file.options_.prefetch))) {
    for (std::size_t r = 0; r < slots_.size(); ++r) {
      slots_[r].buffer = device::Buffer(file.options_.record_bytes);
      start(r);
    }
  }

  void run(int thread, const std::function<void(int, const Slab&)>& consume) {
    try {
      Slab slab;
      for (std::size_t r; (r = next_.fetch_add(1)) < file_.records();) {
        Slot& slot = slots_[r % slots_.size()];
        for (std::size_t started; (started = slot.started.load()) != r + 1;) {
          if (failed_) return;
          slot.started.wait(started);
        }
        if (failed_) return;
        const auto length = slot.request.wait();
        unpack(r, std::size_t(length), slot.buffer, slab, [&] { consume(thread, slab); });
        if (r + slots_.size() < file_.records()) start(r + slots_.size());
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
    slot.request = file_.file_.async_read(slot.buffer.span().first(file_.lengths_[r]),
                                          std::int64_t(r) * std::int64_t(file_.options_.record_bytes));
    slot.started = r + 1;
    slot.started.notify_all();
  }

  template <class Use>
  void unpack(std::size_t r, std::size_t length, const device::Buffer& buffer, Slab& slab, Use&& use) const {
    RecordHead head{};
    if (length >= sizeof head) std::memcpy(&head, buffer.data(), sizeof head);
    if (head.magic != record_magic || head.number != r || head.used > length || head.step != file_.step())
      throw Error(EIO, {.attempted = "integral record " + std::to_string(r),
                        .path = file_.path(),
                        .offset = std::int64_t(r) * std::int64_t(file_.options_.record_bytes),
                        .size_bytes = std::int64_t(length),
                        .detail = "damaged: not the record that was written"});
    const SlabCodec codec(head.step);
    std::size_t at = sizeof head;
    for (std::uint32_t s = 0; s < head.slabs; ++s) {
      at += codec.unpack(file_.basis_, buffer.data() + at, head.used - at, slab);
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
  std::vector<Slot> slots_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

void IntegralFile::for_each(int threads, const std::function<void(int, const Slab&)>& consume) {
  Reader reader(*this, threads);
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back([&, t] { reader.run(t, consume); });
    reader.run(0, consume);
  }
  reader.rethrow();
}

}  // namespace outcore::chem
