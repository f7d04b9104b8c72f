// The service of procedure calls in one process: the protocol, its messages, and the threads that serve.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gpc/protocol.hpp"
#include "outcore/call.hpp"
#include "outcore/extend/transport.hpp"
#include "transport/poll_backoff.hpp"

namespace outcore::gpc {

/// One thread polls, and runs procedures that do not block. Worker threads, one at first and more when
/// needed, run procedures that may block. Threads that wait for a call poll, too, and run procedures that do
/// not block.
class Service final : Protocol::Outlet, transport::Messages::Receiver {
 public:
  /// Collective. If one process cannot start its threads, all throw its error.
  explicit Service(transport::Transport& transport);
  ~Service() override;  ///< collective, after `finish` at all processes
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// The number of the next procedure, which is the same at all processes that add in the same order.
  std::uint32_t add(const std::string& name, Procedure procedure, const ProcedureOptions& options);
  void retire(std::uint32_t procedure);  ///< makes a procedure refuse calls; Error(ENOENT) if there is none
  void remove(std::uint32_t procedure);  ///< removes a retired procedure; waits for calls being served
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const;

  Request call(int process, std::uint32_t procedure, std::span<const std::byte> header,
               std::span<const std::byte> payload, CallOptions options);
  void wait(const Pending& pending);
  static void check_may_wait();  ///< see check_may_wait_for_calls
  /// Called before and after a wait for others; affects the calling thread if it is a worker.
  static void stand_back(bool begins);
  /// Lets messages progress, for threads that wait.
  void step();

  void answer(Served& served, std::span<const std::byte> reply, std::shared_ptr<const void> keeper);
  void fail(Served& served, const Error& error);
  void drop(Served& served) noexcept;  ///< nobody will answer

  /// Waits for the calls of this process; later ones throw Error(ESHUTDOWN). It continues to serve.
  void finish();

 private:
  struct Idle {};
  Service(transport::Transport& transport, Idle);  // without a thread

  struct Entry {
    std::string name;
    std::shared_ptr<const Procedure> procedure;
    bool may_block = false, retired = false;
    int active = 0;  // calls that are here
    // Where it may block: calls that wait (some of them are in to_work_), and calls that run and do not wait.
    std::deque<std::shared_ptr<Served>> waiting = {};
    std::size_t begun = 0, running = 0;
  };

  // Protocol::Outlet and Messages::Receiver: called with `mutex_` held.
  void send(int to, transport::Packet packet) override;
  void send_bulk(int to, std::uint32_t tag, std::span<const std::byte> data, std::uint64_t token) override;
  void receive_bulk(int from, std::uint32_t tag, std::span<std::byte> into, std::uint64_t token) override;
  [[nodiscard]] std::span<std::byte> common(int process) const noexcept override;
  [[nodiscard]] std::shared_ptr<std::byte> see(const transport::SharedLocation& location,
                                               std::size_t size_bytes) const noexcept override;
  void serve(std::shared_ptr<Served> served) override;
  void complete(std::shared_ptr<Pending> pending) override;
  void packet(int from, std::span<const std::byte> packet) override;
  void bulk_done(std::uint64_t token, int errno_value) override;

  void step(std::chrono::steady_clock::time_point now);
  void run();
  void work();
  [[nodiscard]] bool round();
  [[nodiscard]] bool attended() const noexcept;
  void stand_by(std::chrono::microseconds timeout, std::unique_lock<std::mutex>* listening = nullptr);
  void listen(const Pending& pending);
  bool poll();
  void watch();
  template <class Step>
  void attempt(const Step& step) noexcept;
  [[nodiscard]] std::chrono::microseconds nap(bool any);
  void deliver();
  void serve_ready(bool listens);
  [[nodiscard]] bool anything_ready();
  void execute(std::shared_ptr<Served> served, const Procedure& procedure);
  [[nodiscard]] bool claim(Served& served);
  template <class How>
  void end(Served& served, const How& how);
  template <class How>
  void ended(Served& served, const How& how);
  bool begin_work(std::uint32_t procedure);
  void need_worker() noexcept;
  void start_worker();
  void refuse_work(const Error& error);

  int rank_, size_;
  mutable std::mutex mutex_;  // guards the following members, except where noted
  Protocol protocol_;
  std::unique_ptr<transport::Messages> messages_;
  std::shared_ptr<CallSlots> slots_;  // no lock
  std::deque<Entry> procedures_;
  std::deque<std::shared_ptr<Served>> ready_;
  std::deque<std::uint32_t> to_work_;  // procedures whose call is to run
  std::deque<std::shared_ptr<Pending>> completed_;
  std::condition_variable work_, idle_;  // wakes workers; wakes threads that wait for calls to end
  bool finishing_ = false, stopping_ = false;
  int delivering_ = 0;                // calls that have been taken from completed_, and are not done yet
  std::optional<Error> broken_;       // the transport has failed
  std::chrono::microseconds nap_{0};  // this and the next two: of the thread that listens
  transport::PollBackoff backoff_;
  std::chrono::steady_clock::time_point last_traffic_{};
  std::chrono::steady_clock::time_point last_watch_{};  // of the serving thread
  std::mutex serving_;  // held by the thread that runs a procedure that does not block
  // Threads that wait for a reply, or ask for it, poll; the serving thread stands by meanwhile.
  std::mutex listening_;                          // held by the thread that may sleep until messages come
  std::atomic<const Pending*> awaited_{nullptr};  // what that thread waits for, unless it is the serving one
  std::atomic<int> told_{0};                      // threads that sleep until the listening thread tells them
  std::mutex standing_by_;                        // guards the next two
  std::chrono::steady_clock::time_point stands_by_until_{};  // zero: it does not
  bool leaves_ = false;                                      // nobody is to stand by any more
  std::condition_variable relieved_;
  std::atomic<std::chrono::steady_clock::time_point> polled_{};  // when one of these threads last polled
  std::thread thread_;
  std::vector<std::thread> workers_;
  std::size_t working_ = 0;        // workers that run a procedure
  std::size_t standing_back_ = 0;  // those of them that wait for others
};

}  // namespace outcore::gpc
