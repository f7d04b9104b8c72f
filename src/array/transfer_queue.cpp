#include "array/transfer_queue.hpp"

#include <utility>

#include "device/worker.hpp"
#include "world/gate.hpp"

namespace outcore {

void CollectiveRequest::State::wait() {
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return done; });
  if (!error) return;
  delivered = true;
  std::rethrow_exception(error);
}

void CollectiveRequest::wait() {
  if (state_) state_->wait();
}

bool CollectiveRequest::test() {
  if (!done()) return false;
  wait();
  return true;
}

bool CollectiveRequest::done() const noexcept {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

namespace array {
namespace {

constexpr std::int64_t stage_half_bytes = 4 << 20;

}  // namespace

TransferQueue::TransferQueue(World& world)
    : transport_(world.transport().duplicate()),
      stage_(world.allocate(2 * stage_half_bytes, "staging of blocks for disk arrays")),
      thread_(device::start_worker("outcore-arrays", [this] { run(); })) {}

TransferQueue::~TransferQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

CollectiveRequest TransferQueue::submit(std::string what, std::uint64_t fingerprint,
                                        std::exception_ptr problem, Job job, Begin begin) {
  auto state = std::make_shared<CollectiveRequest::State>();
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back(
        {std::move(what), fingerprint, std::move(problem), std::move(job), std::move(begin), state});
  }
  changed_.notify_one();
  return CollectiveRequest(state);
}

void TransferQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !entries_.empty(); });
    if (entries_.empty()) return;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    work_off(entry);
    entry = {};  // what the job holds goes before the next begins
    lock.lock();
  }
}

void TransferQueue::enter(const Entry& entry) {
  world::agree(*transport_, entry.what, [&] {
    if (entry.problem) std::rethrow_exception(entry.problem);
  });
  world::enter(*transport_, entry.what, entry.fingerprint);
}

/// The next job, if it is the same read at all processes, with no problem at any: all have entered it. Else
/// null. Collective. Nobody but this thread takes what is in the queue.
TransferQueue::Entry* TransferQueue::next_read() {
  Entry* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!entries_.empty() && entries_.front().begin && !entries_.front().problem) next = &entries_.front();
  }
  const auto call =
      next ? static_cast<std::int64_t>(fingerprint(std::as_bytes(std::span(next->what)), next->fingerprint))
           : 0;
  std::int64_t smallest[] = {call, ~call, next ? 1 : 0};
  transport_->all_reduce(std::span(smallest), transport::Reduction::min);
  if (smallest[0] != ~smallest[1] || smallest[2] == 0) return nullptr;
  next->entered = true;
  return next;
}

void TransferQueue::work_off(Entry& entry) {
  std::exception_ptr error;
  try {
    if (!entry.entered) enter(entry);
    Entry* next = entry.begin ? next_read() : nullptr;
    const auto begin_next = [&next] {
      try {
        if (next) next->begin();
      } catch (...) {  // its job meets it again, and is the one to tell of it
        next = nullptr;
      }
    };
    entry.job({*transport_, stage_.segment(), stage_.offset(), stage_half_bytes, begin_next});
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(entry.state->mutex);
    entry.state->error = std::move(error);
    entry.state->done = true;
  }
  entry.state->ended.notify_all();
}

}  // namespace array
}  // namespace outcore
