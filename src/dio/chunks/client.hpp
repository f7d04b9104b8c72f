// The client: moves sections of disk arrays between memory of this process and the owners of chunks.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/request_state.hpp"
#include "base/undelivered.hpp"
#include "dio/block_copies.hpp"
#include "dio/chunks/service.hpp"
#include "dio/chunks/store.hpp"

namespace outcore::dio {

/// The facts of an array that a client needs to request sections.
struct ChunkLayout {
  ChunkGrid grid;
  ElementType type = ElementType::float64;
  bool read_only = false;
  std::uint64_t number = 0;  ///< number of the array in the service
  std::vector<int> owners;   ///< the process of each component

  [[nodiscard]] std::string text() const;  ///< for messages
  /// As bytes for other groups of processes. decode throws Error(EINVAL) for invalid bytes.
  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static ChunkLayout decode(const std::string& bytes);
};

/// Thread-safe. Requests under way keep it alive.
class ChunkClient : public std::enable_shared_from_this<ChunkClient> {
 public:
  /// `store`: the part of the array that this process holds, if any. `copies_bytes`: memory for copies of
  /// chunks of others.
  ChunkClient(World& world, ChunkService& service, ChunkLayout layout, std::shared_ptr<ChunkStore> store,
              std::int64_t copies_bytes);

  [[nodiscard]] World& world() const noexcept { return world_; }
  [[nodiscard]] const ChunkLayout& layout() const noexcept { return layout_; }

  /// `waits`: the caller will wait, so its thread may do the work.
  [[nodiscard]] Request start(ChunkOperation operation, const Slices& slices, const Strided& memory,
                              const void* alpha, bool waits);
  void prefetch(const Box& box);
  /// Waits for all puts and accumulates; returns the first error that was not reported, or null.
  [[nodiscard]] std::exception_ptr settle();
  void forget_copies();  ///< drops copies, so that later gets see changes of others
  void check_open(const char* attempted) const;
  /// Waits for everything under way and releases `store`. Later requests throw Error(EBADF).
  void close() noexcept;

 private:
  struct Task {
    ChunkOperation operation = ChunkOperation::get;
    Slices slices;
    Strided memory;
    std::array<std::byte, 16> alpha{};
    std::shared_ptr<ComposedRequest> request;
  };
  struct Parcel;

  void check(ChunkOperation operation, const Slices& slices, const Strided& memory) const;
  [[nodiscard]] bool is_here(int component) const;
  [[nodiscard]] bool asks_little(const Slices& slices) const;
  void run(const Task& task);
  [[nodiscard]] Task portion_of(const Task& task, Box chunks) const;
  void run_portion(const Task& portion, const Task* next);
  void do_here(const Task& portion, int component);
  void ask(const Task& portion, int component);
  /// The error for a reply of wrong size, or null.
  [[nodiscard]] std::exception_ptr unless_complete(std::size_t came, std::size_t wanted) const;
  void ask_for_chunks(const Task& portion, int component);
  void load(const Task& portion, int component, const Box& chunk, std::span<std::byte> memory,
            const BlockCopies::Loaded& loaded);
  [[noreturn]] void throw_closed(const char* attempted) const;
  void note_begin(ChunkOperation operation);
  void note_end(ChunkOperation operation, const Box& box, const std::weak_ptr<ComposedRequest>& request,
                bool failed);

  World& world_;
  ChunkService& service_;
  const ChunkLayout layout_;
  std::shared_ptr<ChunkStore> store_;  ///< until it is closed
  std::optional<BlockCopies> copies_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::int64_t under_way_ = 0, changes_under_way_ = 0;
  bool open_ = true;
  Undelivered undelivered_;  ///< of puts and accumulates
};

}  // namespace outcore::dio
