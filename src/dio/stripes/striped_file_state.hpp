// The state of a striped file, for the files of its implementation.
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

#include "base/request_state.hpp"
#include "base/undelivered.hpp"
#include "dio/block_copies.hpp"
#include "dio/stripes/components.hpp"
#include "dio/stripes/striped_file.hpp"

namespace outcore::dio {

inline constexpr std::int64_t copied_block_bytes = 64 << 10;  ///< of the client cache

/// Bytes of a component, and their memory.
struct ComponentRange {
  int component = 0;
  TransferRange range;
};

/// One request: its parts in component files here, and the calls to other owners.
class StripedFile::Transfer final : public FinishedByWaiter {
 public:
  struct Local {
    JoinedRanges joined;
    std::vector<Request> requests;  ///< one for each of `joined`; empty: done already
  };
  struct Distant {
    Request call;
    std::vector<std::byte> packed;         ///< data of small writes, one after another
    std::vector<TransferRange> scattered;  ///< destinations of small reads
  };
  /// The part that is read from copies of blocks, which may have to be fetched first.
  struct Copying {
    void end(const std::exception_ptr& failure);

    std::atomic<int> left{0};
    std::mutex mutex;
    std::exception_ptr failure;  ///< the first
  };

  ~Transfer() override;
  [[nodiscard]] bool done() const noexcept override;
  [[nodiscard]] std::int64_t value() const noexcept override { return size_bytes; }
  bool help() noexcept override;
  void begin_wait() override;
  void end_wait(std::uint64_t waited_ns) noexcept override;
  [[nodiscard]] bool settled() override;

  bool write = false;
  std::int64_t size_bytes = 0, offset = 0;  ///< all of it, and where its first range begins
  std::uint64_t start_ns = 0;
  std::uint32_t trace_file = 0;
  bool blocking = false;
  std::shared_ptr<StripedComponents> components;
  std::vector<Local> local;
  std::vector<Distant> distant;
  std::shared_ptr<BlockCopies> copies;       ///< null: none
  std::shared_ptr<Copying> copying;          ///< null: nothing
  std::vector<std::int64_t> changed_blocks;  ///< blocks of `copies` that a write changes

 private:
  void end() override;
  void check_may_wait() const override;
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
  std::shared_ptr<BlockCopies> copies;  ///< of components out of reach; null: none
  std::uint32_t procedure = 0;
  bool served = false;  ///< the procedure is registered
  std::uint32_t trace_file = 0;
  std::atomic<bool> open{false};

  Undelivered undelivered;  ///< of writes at other processes

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
  /// `ranges`: ReadRange or WriteRange.
  template <class Range>
  std::shared_ptr<Transfer> start(std::span<const Range> ranges, bool blocking);
  void start_local(Transfer& request, int component, std::vector<TransferRange> ranges);
  void start_distant(Transfer& request, int component, std::span<const TransferRange> ranges);
  void start_from_copies(Transfer& request, int component, std::span<const TransferRange> ranges);
  void load(Transfer& request, const TransferRange& block, int component, const BlockCopies::Loaded& loaded);
  void forget_blocks(Transfer& request, int component, std::span<const TransferRange> ranges);
  void ask(Transfer& request, int component, std::span<const TransferRange> ranges,
           std::function<void(std::span<std::byte> reply, const Error* error)> then = {});
  void settle();
  void flush();
  void close();
};

}  // namespace outcore::dio
