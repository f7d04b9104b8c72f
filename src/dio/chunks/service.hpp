// What one process does for others with its chunks of disk arrays, and memory and threads for what it asks of
// them.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "device/buffer.hpp"
#include "dio/chunks/store.hpp"
#include "dio/thread_pool.hpp"
#include "outcore/world.hpp"

namespace outcore::dio {

/// Memory for elements on their way between processes: not more than a limit at once, accounted to the
/// budget.
class Staging {
 public:
  explicit Staging(Budget& budget);
  void acquire(std::int64_t bytes);  ///< waits for others; Error(ENOMEM) if the budget has not even this left
  [[nodiscard]] bool try_acquire(std::int64_t bytes);
  void release(std::int64_t bytes) noexcept;

 private:
  Budget& budget_;
  const std::int64_t max_bytes_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::int64_t used_bytes_ = 0;
};

/// A piece of it, which has been acquired.
class Staged {
 public:
  Staged(std::shared_ptr<Staging> staging, std::int64_t bytes);
  ~Staged();
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  [[nodiscard]] std::span<std::byte> span() const noexcept { return buffer_.span(); }

 private:
  std::shared_ptr<Staging> staging_;
  std::int64_t bytes_;
  device::Buffer buffer_;
};

enum class Operation : std::uint8_t { get, put, accumulate, prefetch };

/// What is asked of the owner of a component: the header of a call. The elements of the section in
/// this component follow one another in the payload, or the reply, chunk after chunk, each in row-major
/// order.
struct ChunkCall {
  std::uint64_t array = 0;
  std::int32_t component = 0;
  Operation operation = Operation::get;
  std::uint8_t rank = 0;
  std::array<std::int64_t, max_rank> begin{}, end{}, step{};
  alignas(16) std::array<std::byte, 16> alpha{};

  ChunkCall() = default;
  ChunkCall(std::uint64_t array, int component, Operation operation, const Slices& slices);
  [[nodiscard]] Slices slices() const;
};

/// One for each world, made collectively. Arrays are found by numbers that are the same at all processes.
class ChunkService {
 public:
  explicit ChunkService(World& world);
  ~ChunkService();  ///< works off what was submitted

  /// The array is served while what is returned lives, or until the world closes. Calls that are being served
  /// then end as they would.
  [[nodiscard]] std::shared_ptr<void> add(std::uint64_t array, std::shared_ptr<ChunkStore> store);
  /// A number for an array that other groups will know; different at each call, and at each process.
  [[nodiscard]] std::uint64_t foreign_number();

  [[nodiscard]] Request call(int process, const ChunkCall& header, std::span<const std::byte> payload,
                             CallOptions options);
  /// Runs it in one of a few threads.
  void submit(std::function<void()> job) { jobs_.add(std::move(job)); }
  [[nodiscard]] const std::shared_ptr<Staging>& staging() const noexcept { return staging_; }

 private:
  struct Arrays {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, std::shared_ptr<ChunkStore>> stores;
  };
  static void serve(Arrays& arrays, Budget& budget, Call call);

  World& world_;
  std::shared_ptr<Arrays> arrays_ = std::make_shared<Arrays>();
  std::shared_ptr<Staging> staging_;
  std::uint32_t procedure_ = 0;
  std::atomic<std::uint64_t> next_foreign_{0};
  ThreadPool jobs_{"outcore-chunks", 3};
};

}  // namespace outcore::dio
