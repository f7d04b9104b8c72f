// Collective transfers in the background: one thread in each process carries them out in the order of the
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

/// One queue for a world, made collectively: if one process cannot start its thread, all throw its error. It
/// has its own group, so that its collectives and those of the program do not meet.
class TransferQueue {
 public:
  explicit TransferQueue(World& world);
  ~TransferQueue();  ///< carries out the submitted jobs
  /// Collective, like the end of the world, but does not wait. From now on, jobs that others submit and this
  /// process has not are errors there, and so are jobs that are submitted here.
  void closing() noexcept;

  /// The tools of a job: the group, and two halves of one-sided memory for data that passes between
  /// processes.
  struct Context {
    transport::Transport& transport;
    transport::Segment& segment;
    std::int64_t stage_offset, stage_half_bytes;
    /// A read that has begun all of its requests calls it when it has room for more, so that the disk has
    /// work until the next reads run.
    std::function<void()> begin_next;
  };
  /// Called in the background at all processes once all have submitted it, with the same fingerprint and
  /// without a problem; else all get the error. If it throws, it must throw at all processes.
  using Job = std::function<void(const Context&)>;
  /// The part of a read that begins before its job runs, once all processes have submitted it: while `before`
  /// earlier reads have begun all of their requests, or while the running one ends. At this process alone,
  /// perhaps several times. Returns whether it has begun everything. If it throws, the job does it again.
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
    Begin begin;  ///< empty for a job that does not only read
    std::shared_ptr<ComposedRequest> state;
    bool entered = false;  ///< by all processes
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
