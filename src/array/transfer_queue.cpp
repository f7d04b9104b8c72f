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
                                        std::exception_ptr problem, Job job) {
  auto state = std::make_shared<CollectiveRequest::State>();
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back({std::move(what), fingerprint, std::move(problem), std::move(job), state});
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

void TransferQueue::work_off(Entry& entry) {
  std::exception_ptr error;
  try {
    world::agree(*transport_, entry.what, [&] {
      if (entry.problem) std::rethrow_exception(entry.problem);
    });
    world::enter(*transport_, entry.what, entry.fingerprint);
    entry.job({*transport_, stage_.segment(), stage_.offset(), stage_half_bytes});
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
