// What a striped file is made of, for the files that make up its implementation.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/store/striped_file.hpp"
#include "store/block_copies.hpp"
#include "store/striped_components.hpp"

namespace outcore::store {

inline constexpr std::int64_t copied_block_bytes = 64 << 10;  ///< of the client cache

/// A piece of a component.
struct Piece {
  int component = 0;
  Extent extent;
};

/// One request: what of it goes to component files here, and what is asked of others.
struct StripedFile::Request::State {
  struct Local {
    Runs runs;
    std::vector<device::Request> requests;  ///< one for each run; empty: done already
  };
  struct Distant {
    CallRequest call;
    std::vector<std::byte> packed;  ///< small pieces that are written, one after another
    std::vector<Extent> scattered;  ///< where small pieces that are read go
  };
  /// What is taken from copies of blocks, which perhaps have to come first.
  struct Copying {
    void end(const std::exception_ptr& failure);

    std::atomic<int> left{0};
    std::mutex mutex;
    std::exception_ptr failure;  ///< the first
  };

  ~State();
  [[nodiscard]] bool done() const noexcept;
  std::int64_t wait();
  /// Its error, if nobody has been told; counts as told from now on.
  [[nodiscard]] std::exception_ptr undelivered();
  /// It is complete, and there is nothing to tell.
  [[nodiscard]] bool ended_well();

  bool write = false;
  std::int64_t size_bytes = 0, offset = 0;  ///< all of it, and where its first part begins
  std::uint64_t start_ns = 0;
  std::uint32_t trace_file = 0;
  bool blocking = false;
  std::shared_ptr<StripedComponents> components;
  std::vector<Local> local;
  std::vector<Distant> distant;
  std::shared_ptr<BlockCopies> copies;       ///< null: none
  std::shared_ptr<Copying> copying;          ///< null: nothing
  std::vector<std::int64_t> changed_blocks;  ///< of `copies`, by a write

 private:
  void finish();  ///< waits for all of it, once; the lock is held

  std::mutex mutex_;
  std::atomic<bool> finished_{false};
  std::atomic<bool> delivered_{false};
  std::exception_ptr error_;
};

struct StripedFile::State {
  explicit State(World& w) : world(w) {}
  ~State();

  World& world;
  std::string name, directory;
  Stripes stripes;
  Placement placement = Placement::local;
  std::vector<int> owners;  ///< by component
  std::shared_ptr<StripedComponents> components;
  std::shared_ptr<BlockCopies> copies;  ///< of what lies out of reach; null: none
  std::uint32_t procedure = 0;
  bool served = false;  ///< the procedure is registered
  std::uint32_t trace_file = 0;
  std::atomic<bool> open{false};

  // Writes at other processes that are not known to be complete, and to have been told of.
  std::mutex mutex;
  std::vector<std::shared_ptr<Request::State>> asked;
  std::size_t prune_at = 64;

  void create(const Make& make);
  void make_directory(const StripedFileOptions& options);
  void choose_owners(const StripedFileOptions& options);
  void open_components(const StripedFileOptions& options);
  void check_space(const StripedFileOptions& options) const;
  [[nodiscard]] bool is_mine(int component) const noexcept {
    return owners[static_cast<std::size_t>(component)] == world.rank();
  }
  [[nodiscard]] bool reaches(int component) const noexcept {
    return components->files[static_cast<std::size_t>(component)].has_value();
  }

  void check_open(std::string_view attempted) const;
  /// `parts`: ReadPart or WritePart.
  template <class Part>
  std::shared_ptr<Request::State> start(std::span<const Part> parts, bool blocking);
  void start_local(Request::State& request, int component, std::vector<Extent> extents);
  void start_distant(Request::State& request, int component, std::span<const Extent> extents);
  void start_from_copies(Request::State& request, int component, std::span<const Extent> extents);
  void load(Request::State& request, const Extent& block, int component, const BlockCopies::Loaded& loaded);
  void forget_blocks(Request::State& request, int component, std::span<const Extent> extents);
  void ask(Request::State& request, int component, std::span<const Extent> extents,
           std::function<void(std::span<std::byte> reply, const Error* error)> then = {});
  void track(const std::shared_ptr<Request::State>& request);
  void settle();
  void flush();
  void close();
};

}  // namespace outcore::store
