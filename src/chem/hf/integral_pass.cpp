// Passes over integral records: in memory and on disk, read ahead.
#include <cerrno>
#include <exception>
#include <mutex>

#include "base/thread_team.hpp"
#include "chem/hf/record_disk.hpp"
#include "outcore/error.hpp"
#include "store/checksum.hpp"

namespace outcore::chem {

/// One pass over the records. Records on disk form a sequence: position q is the record that a ticket names
/// when its read starts, and uses buffer q % buffers. The thread that has contracted position q starts the
/// read of position q + buffers into that buffer, so reads are always `prefetch` records ahead of the last
/// one taken. A ticket beyond the records ends the sequence. While a read is under way, threads contract
/// records in memory.
class IntegralPass {
 public:
  using Record = IntegralFile::Record;

  IntegralPass(IntegralFile& file, int threads, double least, const Tickets& tickets)
      : file_(file), tickets_(tickets) {
    for (Record& record : file.records_)
      if (!record.lost && record.slabs > 0 && record.bound >= least)
        (record.memory.data() ? in_memory_ : on_disk_).push_back(&record);
    ahead_ = std::vector<RecordAhead>(
        std::min(on_disk_.size(), std::size_t(threads) + std::size_t(file.options_.prefetch)));
    for (std::size_t q = 0; q < ahead_.size(); ++q) {
      ahead_[q].buffer = device::Buffer(file.options_.record_bytes);
      start(q);
    }
  }

  void run(int thread, const std::function<void(int, const Slab&)>& consume) {
    try {
      Slab slab;
      const auto use = [&] { consume(thread, slab); };
      while (!ahead_.empty()) {
        const std::size_t q = next_position_.fetch_add(1);
        RecordAhead& ahead = ahead_[q % ahead_.size()];
        while (!(ahead.started.load() == q + 1 && ahead.read.done()) && contract_from_memory(slab, use)) {
        }
        for (std::size_t started; (started = ahead.started.load()) != q + 1 && started != ended;) {
          if (failed_) return;  // a read begun after the failure would hide `ended` from later positions
          ahead.started.wait(started);
        }
        if (failed_ || ahead.started == ended) break;
        if (arrived(ahead)) unpack(*ahead.record, ahead.buffer, slab, use);
        start(q + ahead_.size());
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
  static constexpr std::size_t ended = ~std::size_t{0};

  struct RecordAhead {
    device::Buffer buffer;
    Record* record = nullptr;
    Request read;
    std::atomic<std::size_t> started{0};  // 1 + the position whose read is under way here; or ended

    RecordAhead() = default;
    RecordAhead(const RecordAhead&) = delete;
    RecordAhead& operator=(const RecordAhead&) = delete;
    // No read may be under way when the buffer is destroyed, also if the pass, or its beginning, has failed.
    ~RecordAhead() {
      try {
        read.wait();
      } catch (const std::exception&) {  // the pass has failed already, or this read was not wanted any more
      }
    }
  };

  void start(std::size_t q) {
    RecordAhead& ahead = ahead_[q % ahead_.size()];
    const std::uint64_t ticket = tickets_ ? tickets_() : next_ticket_.fetch_add(1);
    if (ticket < on_disk_.size()) {
      ahead.record = on_disk_[ticket];
      ahead.read = file_.disk_->read_async(ahead.buffer.span().first(whole_pages(ahead.record->used)),
                                           {.file = ahead.record->file, .number = ahead.record->number});
    }
    ahead.started = ticket < on_disk_.size() ? q + 1 : ended;
    ahead.started.notify_all();
  }

  /// False if the record differs from what was written.
  bool arrived(RecordAhead& ahead) {
    Record& record = *ahead.record;
    try {
      const auto length = std::size_t(ahead.read.wait());
      if (length == whole_pages(record.used) &&
          store::crc32c(ahead.buffer.span().first(length)) == record.checksum)
        return true;
    } catch (const Error& error) {
      if (error.errno_value() != EIO) throw;
    }
    file_.found_damaged(record);
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
    std::uint64_t integrals = 0;
    for (std::uint32_t s = 0; s < record.slabs; ++s) {
      at += SlabCodec::unpack(file_.basis_, buffer.data() + at, record.used - at, slab);
      integrals += slab.rows() * slab.columns.size();
      use();
    }
    if (at != record.used || integrals != record.integrals)
      throw Error(EIO, {.attempted = "integral record",
                        .detail = "damaged: it holds other slabs than its index says"});
  }

  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
    for (RecordAhead& ahead : ahead_) {
      ahead.started = ended;  // wakes threads that wait for a read that will not begin
      ahead.started.notify_all();
    }
  }

  IntegralFile& file_;
  const Tickets& tickets_;
  std::vector<Record*> in_memory_, on_disk_;
  std::atomic<std::size_t> next_in_memory_{0}, next_position_{0}, next_ticket_{0};
  std::vector<RecordAhead> ahead_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

void IntegralFile::for_each(int threads, const std::function<void(int, const Slab&)>& consume, double least,
                            const Tickets& tickets) {
  if (options_.world && !tickets)
    throw Error(EINVAL, {.attempted = "read integrals", .detail = "records of all processes need tickets"});
  IntegralPass pass(*this, threads, least, tickets);
  in_team(threads, [&](int t) { pass.run(t, consume); });
  pass.rethrow();
}

}  // namespace outcore::chem
