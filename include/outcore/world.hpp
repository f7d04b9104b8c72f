// World: the processes that work together, their nodes, memory and scratch directories.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "outcore/api.h"
#include "outcore/budget.hpp"
#include "outcore/call.hpp"
#include "outcore/error.hpp"
#include "outcore/origin.hpp"
#include "outcore/request.hpp"

namespace outcore {

namespace transport {  // for programs that bring one: outcore/extend/transport.hpp
class Segment;
class Transport;
struct StridedTransfer;
}  // namespace transport

namespace world {
struct Entry;  // what the pool knows of a region
class User;    // of one-sided memory: see world/users.hpp
}  // namespace world

struct WorldOptions {
  /// Budget of this process; 0: half of its share of the node's memory. Not more than its share of what a
  /// control group, a ulimit or Slurm allows.
  std::int64_t memory_bytes = 0;
  std::string scratch = {};  ///< directory for scratch; empty: chosen as device::default_scratch does
  /// Treats each process as a node of its own, so that transfers on one machine go as between nodes.
  /// OUTCORE_NODES=processes does so, too.
  bool node_for_each_process = false;
  std::shared_ptr<Budget> budget = {};  ///< of another world, to share it; memory_bytes is then ignored
};

/// The processes that work together. Construction and close are collective (the destructor closes). All
/// processes call collective methods in the same order, one thread of a process at a time; if they call
/// different ones, all get Error(EINVAL). After `close`, collective methods throw Error(EBADF). In a forked
/// child, everything throws it: there, a world and its objects can only be closed, which does nothing.
class OUTCORE_API World {
 public:
  /// The processes of the job: those of MPI_COMM_WORLD if the program is linked to MPI, which it has
  /// initialised with MPI_THREAD_MULTIPLE, else this process alone. Error(ENOTSUP) if a launcher says that
  /// there are more.
  [[nodiscard]] static World job(const WorldOptions& options = {});
  /// This process alone.
  [[nodiscard]] static World self(const WorldOptions& options = {});
  /// The processes of an MPI communicator, given by its Fortran handle: MPI_Comm_c2f(communicator).
  [[nodiscard]] static World mpi(int fortran_communicator, const WorldOptions& options = {});

  /// The processes of a transport that the program brings.
  explicit World(std::unique_ptr<transport::Transport> transport, const WorldOptions& options = {});
  /// The options are made in the collective gate: if `make` throws at one process, all throw.
  using Make = std::function<WorldOptions()>;
  World(std::unique_ptr<transport::Transport> transport, const Make& make);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  /// Processes of equal color form a world of their own, ordered by key, then rank; null for a negative
  /// color. It has its own arrays, gates and procedures, and shares the memory budget of this one, and its
  /// scratch directory unless another one is given. Either may be closed before the other. Collective over
  /// this world.
  [[nodiscard]] std::unique_ptr<World> split(int color, int key = 0, const std::string& scratch = {});
  /// The two steps of split: the transport of the group, and then its world, which is collective over the
  /// group alone.
  [[nodiscard]] std::unique_ptr<transport::Transport> split_transport(int color, int key);
  World(std::unique_ptr<transport::Transport> part, World& whole, const std::string& scratch = {});

  /// Collective, idempotent; frees all one-sided memory. While a process waits here for the others to close,
  /// other collective calls of theirs fail, so that a process that ends early keeps nobody waiting.
  void close();
  [[nodiscard]] bool closed() const noexcept;

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] int node() const noexcept;  ///< number of the node of this process, from 0
  [[nodiscard]] int node_count() const noexcept;
  [[nodiscard]] int node_rank() const noexcept;  ///< of this process on its node
  [[nodiscard]] int node_size() const noexcept;
  [[nodiscard]] transport::Transport& transport();
  [[nodiscard]] transport::Transport& node_transport();  ///< the processes of this node
  [[nodiscard]] Budget& budget() noexcept;
  /// Directory of this process's scratch. If none was given it is chosen here, which may throw Error(ENOENT).
  [[nodiscard]] const std::string& scratch() const;

  /// An object of a layer above that lives as long as the world.
  class Companion {
   public:
    virtual ~Companion() = default;  ///< runs first, when all processes have closed the world
    /// Called when this process begins to wait for the others to close. Collective calls of theirs that do
    /// not pass the gate of the world must then fail, too.
    virtual void closing() noexcept = 0;
  };
  [[nodiscard]] std::shared_ptr<Companion>& companion();

  /// `close` lets `user` finish before it frees the one-sided memory. Any thread. The world does not own it.
  void add_user(const std::shared_ptr<world::User>& user);

  void flush();    ///< completes the one-sided operations of this process, as Segment::flush
  void barrier();  ///< collective; flushes one-sided operations first

  /// The gate of every collective call. Runs `step` at this process, then tells the others how it went: if it
  /// threw anywhere, all throw the error of the lowest rank that did. `fingerprint` is that of the call and
  /// its arguments; if it differs between processes, none runs the step, and all throw Error(EINVAL), which
  /// names a process that differs. The step must not wait for other processes. Collective.
  void together(std::string_view what, std::uint64_t fingerprint, const std::function<void()>& step);
  /// The two halves of `together`, for callers that cannot pass a function: the code between enter and leave
  /// is the step. `failure` is the error that it threw, if any. Each is collective.
  void enter(std::string_view what, std::uint64_t fingerprint);
  /// For a process that must compute its arguments first: `bring` does so inside the gate and returns their
  /// fingerprint. If it throws anywhere, all throw the error of the lowest rank, and no process calls leave.
  void enter(std::string_view what, const std::function<std::uint64_t()>& bring);
  void leave(const std::optional<Error>& failure);

  /// Registers a procedure under the same number at all processes, each with its own function. It may be
  /// called as soon as this returns, until the world closes or `unregister_procedure` returns. Collective.
  /// Error(EEXIST) for a name that is taken.
  std::uint32_t register_procedure(const std::string& name, Procedure procedure,
                                   const ProcedureOptions& options = {});
  /// Waits for calls that are being served here. Later ones fail with Error(ENOENT). Collective.
  void unregister_procedure(std::uint32_t procedure);
  /// Error(ENOENT) for a name that was not registered.
  [[nodiscard]] std::uint32_t procedure(const std::string& name) const;
  /// Calls a procedure at a process, which may be this one. Returns at once; if very many calls to the
  /// process are outstanding it waits, asleep, for some to end. `header` (at most max_call_header_bytes) is
  /// copied, `payload` must stay until the request is done. The target serves the call even while it
  /// computes. Any thread.
  Request call(int process, std::uint32_t procedure, std::span<const std::byte> header,
               std::span<const std::byte> payload = {}, CallOptions options = {});

  /// A piece of one-sided memory, at the same offset in every process. It comes from a pool: one segment
  /// serves many arrays. Zero at first. Collective to allocate. Destroying one is not collective: its memory
  /// is used again once all processes have destroyed it.
  class Region {
   public:
    Region() = default;
    Region(Region&& other) noexcept = default;
    Region& operator=(Region&& other) noexcept;
    ~Region();
    [[nodiscard]] transport::Segment& segment() const;  ///< Error(EBADF) after the world was closed
    /// The segment while one operation lasts: if another thread closes the world, close waits for the end of
    /// the operation.
    class Use {
     public:
      explicit Use(const Region& region);
      ~Use() { end(); }
      Use(const Use&) = delete;
      Use& operator=(const Use&) = delete;
      transport::Segment* operator->() const noexcept { return segment_; }

     private:
      void end() noexcept;

      world::Entry& entry_;
      transport::Segment* segment_;
    };
    [[nodiscard]] Use use() const { return Use(*this); }
    [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }
    [[nodiscard]] std::byte* local() const;
    [[nodiscard]] std::int64_t size_bytes() const noexcept { return size_bytes_; }
    /// A number that is equal at all processes, and different for each region of the world.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(entry_); }
    [[nodiscard]] bool here() const noexcept { return entry_.here(); }  ///< not in a forked child

   private:
    friend class World;
    void release() noexcept;
    [[nodiscard]] world::Entry& entry() const;
    Owned<std::shared_ptr<world::Entry>> entry_;
    std::int64_t offset_ = 0, size_bytes_ = 0;
    std::uint64_t number_ = 0;
  };
  /// Error(ENOMEM) if the budget of any process does not allow it. Aligned to 64 bytes.
  [[nodiscard]] Region allocate(std::int64_t size_bytes, std::string_view what);

 private:
  struct OUTCORE_HIDDEN State;
  class InUse;
  Owned<std::unique_ptr<State>> state_;
};

/// A counter of all processes, for dynamic distribution of tasks; initially zero. Construction is collective.
class OUTCORE_API Counter {
 public:
  explicit Counter(World& world);
  std::int64_t next(
      std::int64_t count = 1);  ///< adds, and returns the value before; not collective, any thread
  /// As `next`, but if the value would exceed `limit`, changes nothing and returns none.
  std::optional<std::int64_t> next_within(std::int64_t limit, std::int64_t count);
  void reset();  ///< collective

 private:
  World& world_;
  World::Region region_;
};

/// A lock between processes, and between threads. First come, first served; waits asleep. Construction is
/// collective. unlock flushes the one-sided operations of this process.
class OUTCORE_API Lock {
 public:
  explicit Lock(World& world);
  void lock();    ///< Error(EDEADLK) in a procedure that must not block
  void unlock();  ///< Error(EPERM) if this process does not hold it

 private:
  World& world_;
  World::Region region_;
  std::atomic<bool> holds_{false};
};

/// FNV-1a hash of bytes, for fingerprints.
[[nodiscard]] OUTCORE_API std::uint64_t fingerprint(std::span<const std::byte> bytes,
                                                    std::uint64_t seed = 0xcbf29ce484222325);

}  // namespace outcore
