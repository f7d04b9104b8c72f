// The service by which one process lets others use its chunks of disk arrays, and memory and threads for its
// own requests to others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "dio/chunks/store.hpp"
#include "dio/staging.hpp"
#include "dio/thread_pool.hpp"
#include "outcore/world.hpp"

namespace outcore::dio {

enum class ChunkOperation : std::uint8_t { get, put, accumulate, prefetch };

/// The request to the owner of a component: the header of a call. Payload or reply have the elements of the
/// section in this component, chunk after chunk, each in row-major order.
struct ChunkCall {
  std::uint64_t array = 0;
  std::int32_t component = 0;
  ChunkOperation operation = ChunkOperation::get;
  std::uint8_t rank = 0;
  std::array<std::int64_t, max_rank> begin{}, end{}, step{};
  alignas(16) std::array<std::byte, 16> alpha{};

  ChunkCall() = default;
  ChunkCall(std::uint64_t array, int component, ChunkOperation operation, const Slices& slices);
  [[nodiscard]] Slices slices() const;
};

/// One service for each world, made collectively. Arrays have numbers that are the same at all processes.
class ChunkService {
 public:
  explicit ChunkService(World& world);
  ~ChunkService();  ///< carries out the submitted work

  /// Serves an array while the returned object lives, or until the world closes. Calls that are being served
  /// then still complete.
  [[nodiscard]] std::shared_ptr<void> add(std::uint64_t array, std::shared_ptr<ChunkStore> store);
  /// A number for an array that other groups will use; different at each call, and at each process.
  [[nodiscard]] std::uint64_t foreign_number();

  [[nodiscard]] Request call(int process, const ChunkCall& header, std::span<const std::byte> payload,
                             CallOptions options);
  /// Runs work in one of a few threads.
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
