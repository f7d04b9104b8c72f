// The state of a disk array, for the files of its implementation.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/array_directory.hpp"
#include "array/array_services.hpp"
#include "array/chunk_mover.hpp"
#include "array/manifest.hpp"
#include "base/undelivered.hpp"
#include "dio/chunks/client.hpp"
#include "dio/chunks/grid.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/extend/transport.hpp"
#include "store/component.hpp"

namespace outcore {

struct DiskArray::State {
  using TransferQueue = array::TransferQueue;

  explicit State(World& w) : world(w), services(array::ArrayServices::of(w)), queue(services.queue) {}

  World& world;
  array::ArrayServices& services;
  TransferQueue& queue;
  std::uint64_t id = 0;  ///< equal at all processes
  dio::ChunkGrid grid;
  std::int64_t block_bytes = 0;  ///< of the components
  ElementType type = ElementType::float64;
  store::CodecOptions codec;
  DiskArrayCaches caches;
  std::string metadata;
  std::string identity;  ///< of a persistent array
  bool persistent = false, read_only = false, open = true;
  bool changed = false;  ///< by collective calls since the last commit; set by the queue: the same everywhere
  std::uint64_t generation = 0;
  array::ArrayDirectory directory;           ///< of a persistent array
  std::vector<int> owners;                   ///< the process of each component
  std::shared_ptr<dio::ChunkStore> store;    ///< of this process
  std::shared_ptr<dio::ChunkClient> client;  ///< noncollective access
  std::vector<std::shared_ptr<void>>
      known;  ///< registrations in the services of this world, and of those it is shared with
  class Reader;
  std::weak_ptr<Reader> reader;  ///< of collective reads, while it exists; used by the queue only
  Undelivered undelivered;       ///< of collective transfers

  [[nodiscard]] store::Geometry geometry(int component) const;
  [[nodiscard]] store::ComponentOptions component_options(int component) const;
  [[nodiscard]] std::function<void(std::int64_t bytes)> account(std::string_view what) const;
  [[nodiscard]] store::ChunkCacheOptions cache_options(std::size_t components) const;
  [[nodiscard]] std::string kind() const;  ///< the same on all nodes
  [[nodiscard]] std::string text() const;  ///< for messages

  /// Submits a job; every process does its share of it. `prepare` checks the arguments of this process and
  /// makes its share; if it or a share throws at any process, all get the error.
  using Share = std::function<void(const TransferQueue::Context&)>;
  enum class Effect : std::uint8_t { none, writes };
  Request submit(std::string_view what, const std::string& arguments, const std::function<Share()>& prepare,
                 Effect effect = Effect::none, TransferQueue::Begin begin = {});
  /// Combines the answers of all processes about their components, while all puts are in the components.
  /// Collective.
  std::int64_t measure(const std::string& arguments, transport::Reduction reduction,
                       const std::function<std::int64_t()>& own);
  /// Waits for all transfers; returns the first error that was not reported, or null.
  std::exception_ptr take_undelivered();
  [[nodiscard]] std::span<const dio::OwnedComponent> components() const noexcept;
  void let_go() noexcept;  ///< closes the files; waits for transfers under way
  void check_box(const Box& box) const;
  void check_type(std::string_view attempted, ElementType other) const;
  void check_writable() const;
  void check_open(std::string_view attempted) const;

  void create(const Make& make);
  void load(const MakeOpening& make);
  void make_store();
  void add_component(int component, store::Component file, std::size_t components,
                     store::StateLease lease = {});
  void open_latest(const std::string& path, int contained, std::vector<std::byte>& manifest);
  void open_components(const array::Manifest& manifest, std::span<const int> mine);
  void keep_states_read();
  void serve();
  [[nodiscard]] std::string share(World& parent);
  void commit(const TransferQueue::Context& context, const std::string& new_metadata);
};

}  // namespace outcore
