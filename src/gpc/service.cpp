#include "gpc/service.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/completion.hpp"
#include "device/worker.hpp"
#include "outcore/extend/transport.hpp"
#include "transport/agree.hpp"
#include "transport/remote_error.hpp"

namespace outcore::gpc {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t max_running = 4;     // calls of a procedure that may block and do not wait for others
constexpr std::size_t max_waiting = 4096;  // the most calls to one process without a wait of the caller
// Polling before sleeping: [M26].
constexpr auto spin = 200us;      // a thread polls for a reply for as long as a wake-up would take
constexpr auto alone = 20us;      // after this time it yields to threads that compute
constexpr auto crowded = 30us;    // a yield of this length means that they need the core
constexpr auto just_now = 100us;  // one step of bulk data, or over a network, may take this long
constexpr std::chrono::microseconds stand_by_time{100}, max_stand_by_time{400};
constexpr auto alert = 50us;  // bulk data needs several steps of both sides, the first of them soon
constexpr int idle_share = 320;
constexpr auto alive_every = 1s;  // how often the service checks whether targets are alive
constexpr auto busy = 4ms;        // after traffic, naps stay short for this time
constexpr std::chrono::microseconds min_nap = 50us, max_nap = 1000us, told_nap = 100ms;

thread_local bool serves = false;          // this thread runs a procedure that does not block
thread_local Served* works_for = nullptr;  // this thread is a worker, and runs a procedure for this call

Error answered() {
  return {EBADF, {.attempted = "answer a call", .detail = "it was answered"}};
}

}  // namespace

Service::Service(transport::Transport& transport, Idle)
    : rank_(transport.rank()),
      size_(transport.size()),
      protocol_(transport.rank(), *this),
      messages_(transport.messages()),
      slots_(std::make_shared<CallSlots>(messages_->common(transport.rank()))),
      backoff_(idle_share) {}

Service::Service(transport::Transport& transport) : Service(transport, Idle{}) {
  transport::agree(transport, [&] {
    // Not a worker with low priority: it must take the core of a thread that computes.
    thread_ = start_thread("outcore-gpc", [this] { run(); });
    const std::lock_guard guard(mutex_);
    start_worker();
  });
}

Service::~Service() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  {
    const std::lock_guard guard(standing_by_);
    leaves_ = true;
  }
  relieved_.notify_one();
  messages_->wake();
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (std::size_t i = 0;; ++i) {  // a worker that finishes its work may start another
    std::unique_lock lock(mutex_);
    if (i == workers_.size()) break;
    std::thread worker = std::move(workers_[i]);
    lock.unlock();
    worker.join();
  }
}

// ---- procedures ----

std::uint32_t Service::add(const std::string& name, Procedure procedure, const ProcedureOptions& options) {
  const std::lock_guard guard(mutex_);
  procedures_.push_back({.name = name,
                         .procedure = std::make_shared<const Procedure>(std::move(procedure)),
                         .may_block = options.may_block});
  return static_cast<std::uint32_t>(procedures_.size() - 1);
}

void Service::retire(std::uint32_t procedure) {
  const std::lock_guard guard(mutex_);
  if (procedure >= procedures_.size() || procedures_[procedure].retired)
    throw Error(ENOENT, {.attempted = "unregister procedure " + std::to_string(procedure)});
  procedures_[procedure].retired = true;
}

void Service::remove(std::uint32_t procedure) {
  std::shared_ptr<const Procedure> removed;  // destroyed without the lock
  std::unique_lock lock(mutex_);
  Entry& entry = procedures_[procedure];
  idle_.wait(lock, [&] { return entry.active == 0; });
  removed = std::move(entry.procedure);
}

std::optional<std::uint32_t> Service::find(const std::string& name) const {
  const std::lock_guard guard(mutex_);
  for (std::size_t i = 0; i < procedures_.size(); ++i)
    if (!procedures_[i].retired && procedures_[i].name == name) return static_cast<std::uint32_t>(i);
  return {};
}

// ---- the caller's side ----

Request Service::call(int process, std::uint32_t procedure, std::span<const std::byte> header,
                      std::span<const std::byte> payload, CallOptions options) {
  const auto refuse = [&](int errno_value, std::size_t size, std::string detail) {
    throw Error(errno_value, {.attempted = "call process " + std::to_string(process),
                              .size_bytes = static_cast<std::int64_t>(size),
                              .detail = std::move(detail)});
  };
  if (process < 0 || process >= size_)
    throw Error(EINVAL, {.attempted = "call process " + std::to_string(process),
                         .detail = "there are " + std::to_string(size_) + " processes"});
  if (header.size() > max_call_header_bytes)
    refuse(EMSGSIZE, header.size(),
           "a header has at most " + std::to_string(max_call_header_bytes) + " bytes");
  if (static_cast<std::int64_t>(payload.size()) > max_call_bytes)
    refuse(EMSGSIZE, payload.size(), "a payload has at most " + std::to_string(max_call_bytes) + " bytes");
  const auto room = static_cast<std::int64_t>(options.reply.size()) + options.max_reply_bytes;
  if (options.max_reply_bytes < 0 || room > max_call_bytes)
    refuse(EMSGSIZE, 0,
           "room for a reply of " + std::to_string(room) + " bytes; it has at most " +
               std::to_string(max_call_bytes));

  auto pending = std::make_shared<Pending>();
  pending->target = process;
  pending->procedure = procedure;
  pending->header = Bytes(header);
  pending->payload = payload;
  pending->options = std::move(options);
  pending->service = this;
  if (!messages_->common(process).empty()) pending->find_room(*slots_);
  std::unique_lock lock(mutex_);
  while (!serves) {
    const auto before = protocol_.waiting_for(process, max_waiting);
    if (!before) break;
    lock.unlock();
    wait(*before);
    lock.lock();
  }
  if (finishing_)
    throw Error(ESHUTDOWN,
                {.attempted = "call process " + std::to_string(process), .detail = "the world is closing"});
  if (broken_) throw Error(*broken_);
  protocol_.call(pending);
  const bool failed = !completed_.empty();  // at once, if the target is known to be lost
  lock.unlock();
  if (failed) deliver();
  return Request(std::move(pending));
}

void Service::check_may_wait() {
  if (serves)
    throw Error(EDEADLK, {.attempted = "wait for a call",
                          .detail = "in a procedure that was not registered as one that may block"});
}

void Service::wait(const Pending& pending) {
  check_may_wait();
  const auto start = Clock::now();
  polled_ = start;  // also if another thread was faster: that leaves the next messages to this one
  for (auto now = start; !pending.done() && now - start < spin; now = Clock::now()) {
    step(now);
    if (now - start < alone) continue;
    const auto before = Clock::now();
    std::this_thread::yield();
    if (Clock::now() - before > crowded) break;
  }
  if (pending.done()) return;
  const WaitsForOthers waits;
  listen(pending);
  pending.complete.wait(false, std::memory_order_acquire);
}

/// Sleeps for messages in place of the serving thread, if that stands by: so the end of the call wakes one
/// thread, not two.
void Service::listen(const Pending& pending) {
  if (!messages_->is_told()) messages_->wake();  // the naps so far were those of times without calls
  std::unique_lock listening(listening_, std::try_to_lock);
  if (!listening) {  // the listening thread wakes this one
    ++told_;
    pending.complete.wait(false, std::memory_order_acquire);
    --told_;
    return;
  }
  awaited_ = &pending;
  while (!pending.done()) {
    const bool any = round();
    if (pending.done()) break;
    if (const auto timeout = nap(any); !any && timeout.count() > 0) messages_->wait(timeout);
  }
  awaited_ = nullptr;
  polled_ = Clock::now();
  listening.unlock();
  const std::lock_guard guard(standing_by_);
  if (told_ > 0 || stands_by_until_ > polled_.load() + max_stand_by_time) relieved_.notify_one();
}

/// Lets any number of calls wait for one another.
void Service::stand_back(bool begins) {
  thread_local int depth = 0;
  if (!works_for || (begins ? depth++ : --depth) > 0) return;
  Service& service = *works_for->service;
  const std::lock_guard guard(service.mutex_);
  Entry& entry = service.procedures_[works_for->procedure];
  if (!begins) {
    ++entry.running;
    --service.standing_back_;
    return;
  }
  --entry.running;
  ++service.standing_back_;
  if (!works_for->ended) service.protocol_.yield(*works_for);
  (void)service.begin_work(works_for->procedure);
  if (!service.to_work_.empty()) service.need_worker();
}

void Service::step() {
  step(Clock::now());
}

void Service::step(Clock::time_point now) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;          // another thread does it
  const bool moved = poll();  // perhaps for long
  polled_.store(moved ? Clock::now() : now, std::memory_order_relaxed);
  const bool any = !completed_.empty() || !ready_.empty();
  lock.unlock();
  if (!any) return;
  deliver();
  serve_ready(false);
}

void Service::finish() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return protocol_.calls() == 0 && completed_.empty() && delivering_ == 0; });
  finishing_ = true;
}

/// Hands over completed calls: runs the function of the caller, then wakes the threads that wait.
void Service::deliver() {
  std::unique_lock lock(mutex_);
  while (!completed_.empty()) {
    const auto pending = std::move(completed_.front());
    completed_.pop_front();
    ++delivering_;
    lock.unlock();
    pending->settle();
    if (const auto then = std::move(pending->options.then))
      then(pending->came, pending->failure ? &*pending->failure : nullptr);
    pending->complete = true;
    pending->complete.notify_all();
    announce_completion();
    if (awaited_ == pending.get()) messages_->wake();
    lock.lock();
    --delivering_;
  }
  if (protocol_.calls() == 0) idle_.notify_all();
}

// ---- the target's side ----

/// False if the call has ended before: different threads may answer copies of it.
bool Service::claim(Served& served) {
  const std::lock_guard guard(mutex_);
  return !std::exchange(served.ended, true);
}

/// Ends a call, by the thread that has claimed it.
template <class How>
void Service::end(Served& served, const How& how) {
  const std::lock_guard guard(mutex_);
  ended(served, how);
}

template <class How>
void Service::ended(Served& served, const How& how) {
  how();
  served.let_go();
  if (--procedures_[served.procedure].active == 0) idle_.notify_all();
  if (protocol_.transfers() > 0 && !messages_->is_told()) messages_->wake();  // it looks more often meanwhile
}

void Service::serve(std::shared_ptr<Served> served) {
  if (served->procedure < procedures_.size() && !procedures_[served->procedure].retired) {
    Entry& entry = procedures_[served->procedure];
    ++entry.active;
    served->service = this;
    if (entry.may_block) {
      const std::uint32_t procedure = served->procedure;
      entry.waiting.push_back(std::move(served));
      if (begin_work(procedure)) need_worker();
    } else {
      ready_.push_back(std::move(served));
    }
    return;
  }
  protocol_.fail(*served, Error(ENOENT,
                                {.attempted = "call procedure " + std::to_string(served->procedure),
                                 .detail = "it is not registered, or not any more"},
                                rank_));
}

/// Runs the procedures that do not block, one at a time. `listens`: this thread has nothing else to do. Other
/// threads leave the procedures to a thread that runs one.
void Service::serve_ready(bool listens) {
  const device::Burst burst(device::Burst::Then::rests);  // of the I/O that they begin
  while (anything_ready()) {
    std::unique_lock serving(serving_, std::defer_lock);
    if (listens) {
      serving.lock();
    } else if (!serving.try_lock()) {  // the holder may have looked already
      messages_->wake();
      return;
    }
    std::unique_lock lock(mutex_);
    if (ready_.empty()) return;
    auto served = std::move(ready_.front());
    ready_.pop_front();
    const auto procedure = procedures_[served->procedure].procedure;
    lock.unlock();
    serves = true;
    execute(std::move(served), *procedure);
    serves = false;
    serving.unlock();
    deliver();
  }
}

bool Service::anything_ready() {
  const std::lock_guard guard(mutex_);
  return !ready_.empty();
}

/// The caller of this keeps the procedure, which may be removed as soon as the call is answered.
void Service::execute(std::shared_ptr<Served> served, const Procedure& procedure) {
  try {
    procedure(Call(served));
  } catch (...) {
    std::string name;
    {
      const std::lock_guard guard(mutex_);
      name = procedures_[served->procedure].name;
    }
    const Error error = transport::current_error("procedure '" + name + "'");
    if (!claim(*served)) return;
    end(*served, [&] { protocol_.fail(*served, Error(error.errno_value(), error.context(), rank_)); });
  }
}

/// Queues the next waiting call of a procedure. So a procedure that takes long does not delay calls of
/// another one.
bool Service::begin_work(std::uint32_t procedure) {
  Entry& entry = procedures_[procedure];
  if (entry.begun == entry.waiting.size() || entry.begun + entry.running >= max_running) return false;
  ++entry.begun;
  to_work_.push_back(procedure);
  return true;
}

/// Wakes or starts a worker. If the system has no further thread, the existing ones must do; if all of these
/// wait for others, the calls fail, because their callers would wait for ever.
void Service::need_worker() noexcept {
  if (workers_.size() - working_ >= to_work_.size()) return work_.notify_one();
  try {
    start_worker();
  } catch (...) {
    if (workers_.size() == standing_back_) refuse_work(transport::current_error("serve a call"));
  }
}

void Service::start_worker() {
  workers_.reserve(workers_.size() + 1);
  workers_.push_back(start_thread("outcore-gpc-io", [this] { work(); }));
}

/// Makes all calls that wait for a worker fail.
void Service::refuse_work(const Error& error) {
  to_work_.clear();
  for (Entry& entry : procedures_) {
    entry.begun = 0;
    while (!entry.waiting.empty()) {
      const auto served = std::move(entry.waiting.front());
      entry.waiting.pop_front();
      served->ended = true;
      ended(*served, [&] { protocol_.fail(*served, Error(error.errno_value(), error.context(), rank_)); });
    }
  }
}

void Service::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (to_work_.empty()) {
      if (stopping_) return;
      work_.wait(lock, [&] { return stopping_ || !to_work_.empty(); });
      continue;
    }
    const std::uint32_t number = to_work_.front();
    to_work_.pop_front();
    Entry& entry = procedures_[number];
    auto served = std::move(entry.waiting.front());
    entry.waiting.pop_front();
    --entry.begun;
    ++entry.running;
    ++working_;
    auto procedure = entry.procedure;
    lock.unlock();
    works_for = served.get();
    execute(std::move(served), *procedure);
    works_for = nullptr;
    procedure = nullptr;
    deliver();
    lock.lock();
    --entry.running;
    --working_;
    if (begin_work(number) && to_work_.size() > 1) need_worker();  // this thread takes one
  }
}

void Service::answer(Served& served, std::span<const std::byte> reply, std::shared_ptr<const void> keeper) {
  if (!claim(served)) throw answered();
  reply = served.put_into_room(reply);
  end(served, [&] { protocol_.answer(served, reply, std::move(keeper)); });
}

void Service::fail(Served& served, const Error& error) {
  if (!claim(served)) throw answered();
  end(served, [&] { protocol_.fail(served, error); });
}

void Service::drop(Served& served) noexcept {
  const Error error(ECANCELED, {.attempted = "serve a call", .detail = "the procedure did not answer"},
                    rank_);
  if (claim(served)) end(served, [&] { protocol_.fail(served, error); });
}

// ---- the serving thread ----

void Service::run() {
  prctl(PR_SET_TIMERSLACK, 1000UL);
  auto max_stand_by = stand_by_time;
  for (;;) {
    watch();
    if (attended()) {  // each look takes the core of a thread that polls
      stand_by(max_stand_by);
      max_stand_by = std::min(2 * max_stand_by, max_stand_by_time);
      continue;
    }
    max_stand_by = stand_by_time;
    std::unique_lock listening(listening_, std::try_to_lock);
    if (!listening) {
      stand_by(told_nap, &listening);
      if (!listening) continue;
    }
    const bool any = round();
    {
      const std::lock_guard guard(mutex_);
      // Data that this process sends must leave before it ends, if possible.
      const bool any_waits =
          std::ranges::any_of(procedures_, [](const Entry& each) { return !each.waiting.empty(); });
      if (stopping_ && (protocol_.transfers() == 0 || broken_) && !any_waits) return;
    }
    const auto timeout = nap(any);
    if (!any && timeout.count() > 0) messages_->wait(timeout);
  }
}

bool Service::attended() const noexcept {
  return told_ == 0 && Clock::now() - polled_.load() < just_now;
}

/// Sleeps while another thread polls. Senders need not wake this thread meanwhile, which would take the core,
/// or the lock, of the polling one. `listening`: not if it can be locked, because its holder looks for this
/// thread afterwards.
void Service::stand_by(std::chrono::microseconds timeout, std::unique_lock<std::mutex>* listening) {
  std::unique_lock lock(standing_by_);  // a semaphore would spin
  if (listening && listening->try_lock()) return;
  if (leaves_) return;
  stands_by_until_ = Clock::now() + timeout;
  relieved_.wait_for(lock, timeout);
  stands_by_until_ = Clock::time_point{};
}

bool Service::round() {
  std::unique_lock lock(mutex_);
  const bool any = poll(), to_do = !completed_.empty() || !ready_.empty();
  lock.unlock();
  if (!to_do) return any;
  deliver();
  serve_ready(true);
  return any;
}

/// Makes calls to a process that has died fail: nothing else would end them.
void Service::watch() {
  const auto now = Clock::now();
  if (now - last_watch_ < alive_every) return;
  last_watch_ = now;
  {
    const std::lock_guard guard(mutex_);
    for (const int target : protocol_.targets())
      if (!messages_->alive(target)) protocol_.lost(target, died(target));
  }
  deliver();
}

/// Takes the messages that have come. If the transport has failed, calls fail with its error.
bool Service::poll() {
  bool any = false;
  if (!broken_) attempt([&] { any = messages_->poll(*this); });
  if (broken_)
    for (const int target : protocol_.targets()) protocol_.lost(target, *broken_);
  return any;
}

template <class Step>
void Service::attempt(const Step& step) noexcept {
  try {
    step();
  } catch (...) {
    if (!broken_) broken_ = transport::current_error("exchange messages");
  }
}

/// How long to sleep: until woken, if the transport wakes this thread. Else the more traffic, the shorter,
/// and not at all when a bulk transfer has just begun.
std::chrono::microseconds Service::nap(bool any) {
  const auto now = Clock::now();
  if (any) last_traffic_ = now;
  std::size_t transfers = 0;
  {
    const std::lock_guard guard(mutex_);
    transfers = protocol_.transfers();
  }
  const auto idle_nap = std::max(max_nap, backoff_.nap());
  if (messages_->is_told()) return told_nap;
  if (transfers > 0 && now - last_traffic_ < alert) return 0us;
  if (transfers > 0 || now - last_traffic_ < busy)
    nap_ = min_nap;
  else
    nap_ = std::clamp<std::chrono::microseconds>(2 * nap_, min_nap, idle_nap);
  return nap_;
}

void Service::send(int to, transport::Packet packet) {
  attempt([&] { messages_->send(to, packet); });
}
void Service::send_bulk(int to, std::uint32_t tag, std::span<const std::byte> data, std::uint64_t token) {
  attempt([&] { messages_->send_bulk(to, tag, data, token); });
}
void Service::receive_bulk(int from, std::uint32_t tag, std::span<std::byte> into, std::uint64_t token) {
  attempt([&] { messages_->receive_bulk(from, tag, into, token); });
}
std::span<std::byte> Service::common(int process) const noexcept {
  return messages_->common(process);
}
std::shared_ptr<std::byte> Service::see(const transport::SharedLocation& location,
                                        std::size_t size_bytes) const noexcept {
  return transport::see_shared(location, size_bytes);
}
void Service::complete(std::shared_ptr<Pending> pending) {
  completed_.push_back(std::move(pending));
}
void Service::packet(int from, std::span<const std::byte> packet) {
  protocol_.packet(from, packet);
}
void Service::bulk_done(std::uint64_t token, int errno_value) {
  protocol_.bulk_done(token, errno_value);
}

}  // namespace outcore::gpc
