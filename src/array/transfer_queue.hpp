// Collective transfers in the background: one thread in each process works them off in the order of the
// calls.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/request_state.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/world.hpp"

namespace outcore::array {

/// One for a world, made collectively: where one process cannot start its thread, all throw its error. It has
/// a group of its own, so that its collectives and those of the program do not meet.
class TransferQueue {
 public:
  explicit TransferQueue(World& world);
  ~TransferQueue();  ///< works off what was submitted
  /// Collective, like the end of the world, but does not wait: what others submit, and this process has not,
  /// is an error there from now on, and so is what is submitted here.
  void closing() noexcept;

  /// What a job may use: the group, and two halves of one-sided memory for what passes between processes.
  struct Context {
    transport::Transport& transport;
    transport::Segment& segment;
    std::int64_t stage_offset, stage_half_bytes;
    /// A read that has begun all it has to calls it when it has room for more, so that the disk has work
    /// until the next ones run.
    std::function<void()> begin_next;
  };
  /// Called in the background at all processes once all have submitted it with the same fingerprint and
  /// nobody with a problem; else all get the error. Errors it throws must have been thrown at all processes.
  using Job = std::function<void(const Context&)>;
  /// What a read does of its job before it runs, once all have submitted it, while `before` others come first
  /// and have begun all they have to, or the one that runs ends; at this process alone, perhaps several
  /// times. Returns whether it has begun all of it. If it throws, the job does it again.
  using Begin = std::function<bool(std::size_t before)>;

  [[nodiscard]] std::uint64_t next_number() noexcept {
    return ++number_;
  }  ///< collective: the same everywhere

  [[nodiscard]] Request submit(std::string what, std::uint64_t fingerprint, std::exception_ptr problem,
                               Job job, Begin begin = {});

 private:
  struct Idle {};
  TransferQueue(World& world, Idle);  ///< without a thread

  struct Entry {
    std::string what;
    std::uint64_t fingerprint;
    std::exception_ptr problem;
    Job job;
    Begin begin;  ///< empty: of a job that does not only read
    std::shared_ptr<ComposedRequest> state;
    bool entered = false;  ///< by all
  };

  void run();
  void wait_for_others_to_close() noexcept;
  void work_off(Entry& entry);
  void enter(const Entry& entry);
  [[nodiscard]] std::vector<Entry*> next_reads();

  std::unique_ptr<transport::Transport> transport_;
  World::Region stage_;
  std::uint64_t number_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool closing_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace outcore::array
