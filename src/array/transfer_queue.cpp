#include "array/transfer_queue.hpp"

#include <cerrno>
#include <optional>
#include <utility>

#include "device/worker.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "transport/remote_error.hpp"
#include "world/gate.hpp"

namespace outcore::array {
namespace {

constexpr std::int64_t stage_half_bytes = 4 << 20;
constexpr std::size_t max_ahead = 4;  // reads; small ones have little to do for a disk

}  // namespace

TransferQueue::TransferQueue(World& world, Idle)
    : transport_(world.transport().duplicate()),
      stage_(world.allocate(2 * stage_half_bytes, "staging of blocks for disk arrays")) {}

TransferQueue::TransferQueue(World& world) : TransferQueue(world, Idle{}) {
  world::agree(*transport_, "start the queue of disk arrays",
               [&] { thread_ = device::start_worker("outcore-arrays", [this] { run(); }); });
}

TransferQueue::~TransferQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void TransferQueue::closing() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
}

Request TransferQueue::submit(std::string what, std::uint64_t fingerprint, std::exception_ptr problem,
                              Job job, Begin begin) {
  auto state = std::make_shared<ComposedRequest>();
  {
    const std::lock_guard lock(mutex_);
    if (closing_) throw Error(EBADF, {.attempted = what, .detail = "the world is being closed"});
    entries_.push_back(
        {std::move(what), fingerprint, std::move(problem), std::move(job), std::move(begin), state});
  }
  changed_.notify_one();
  return Request(state);
}

void TransferQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || stop_ || !entries_.empty(); });
    if (entries_.empty()) break;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    // The thread that woke this one has kept its core; from here on disks and other processes wait for this
    // thread.
    device::set_wakes(device::Wakes::soon);
    work_off(entry);
    entry = {};  // releases the objects of the job before the next begins
    device::set_wakes(device::Wakes::later);
    lock.lock();
  }
  const bool closing = closing_;
  lock.unlock();
  if (closing) wait_for_others_to_close();
}

void TransferQueue::wait_for_others_to_close() noexcept {
  try {
    while (!world::enter_to_close(*transport_)) {
    }
  } catch (...) {  // the transport has failed, and so have all requests of other processes
  }
}

void TransferQueue::enter(const Entry& entry) {
  std::optional<Error> failure;
  try {
    if (entry.problem) std::rethrow_exception(entry.problem);
  } catch (...) {
    failure = transport::current_error(entry.what);
  }
  world::enter(*transport_, entry.what, entry.fingerprint, failure);
}

/// The next jobs, as long as they are the same reads at all processes and no process has a problem: all have
/// entered them. Collective. Only this thread takes jobs from the queue.
std::vector<TransferQueue::Entry*> TransferQueue::next_reads() {
  std::vector<Entry*> next;
  {
    const std::lock_guard lock(mutex_);
    for (Entry& each : entries_) {
      if (next.size() == max_ahead || !each.begin || each.problem) break;
      next.push_back(&each);
    }
  }
  std::int64_t smallest[3 * max_ahead] = {};
  for (std::size_t i = 0; i < next.size(); ++i) {
    const auto call = fingerprint(std::as_bytes(std::span(next[i]->what)), next[i]->fingerprint);
    smallest[3 * i] = static_cast<std::int64_t>(call);
    smallest[3 * i + 1] = ~static_cast<std::int64_t>(call);
    smallest[3 * i + 2] = 1;
  }
  transport_->all_reduce(std::span(smallest), transport::Reduction::min);
  std::size_t same = 0;
  while (same < next.size() && smallest[3 * same] == ~smallest[3 * same + 1] && smallest[3 * same + 2] == 1)
    next[same++]->entered = true;
  next.resize(same);
  return next;
}

void TransferQueue::work_off(Entry& entry) {
  std::exception_ptr error;
  try {
    if (!entry.entered) enter(entry);
    std::vector<Entry*> next;
    if (entry.begin) next = next_reads();
    const auto begin_next = [&next] {
      try {
        for (std::size_t i = 0; i < next.size() && next[i]->begin(i); ++i) {
        }
      } catch (...) {  // its job meets the error again, and reports it
        next.clear();
      }
    };
    entry.job({*transport_, stage_.segment(), stage_.offset(), stage_half_bytes, begin_next});
  } catch (...) {
    error = std::current_exception();
  }
  entry.state->end_part(error);
}

}  // namespace outcore::array
