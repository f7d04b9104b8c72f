// What a disk array is made of, for the files that make up its implementation.
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
#include "array/chunk_mover.hpp"
#include "array/transfer_queue.hpp"
#include "outcore/array/chunk_grid.hpp"
#include "outcore/array/disk_array.hpp"
#include "outcore/store/component.hpp"
#include "outcore/store/manifest.hpp"

namespace outcore {

struct DiskArray::State {
  using TransferQueue = array::TransferQueue;

  State(World& w, TransferQueue& q) : world(w), queue(q) {}

  World& world;
  TransferQueue& queue;
  std::string id;  ///< equal at all processes
  ChunkGrid grid;
  ElementType type = ElementType::float64;
  store::CodecOptions codec;
  std::string metadata;
  bool persistent = false, read_only = false, open = true;
  bool changed = false;  ///< since the last commit; the queue's, so that it is the same at all processes
  std::uint64_t generation = 0;
  array::ArrayDirectory directory;  ///< of a persistent array
  std::vector<array::OwnedComponent> components;
  std::vector<std::shared_ptr<CollectiveRequest::State>> requests;  ///< not known to be complete and seen

  [[nodiscard]] store::Geometry geometry(int component) const;
  [[nodiscard]] store::ComponentOptions component_options(int component) const;
  [[nodiscard]] std::string text() const;  ///< for messages

  /// Submits a job of which every process does a part. `prepare` checks the arguments of this process and
  /// makes its part; if it or a part throws anywhere, all get the error.
  using Part = std::function<void(const TransferQueue::Context&)>;
  CollectiveRequest submit(std::string_view what, const std::string& arguments,
                           const std::function<Part()>& prepare);
  std::exception_ptr
  undelivered();  ///< waits for all transfers; the first error that nobody has seen, or null
  void check_box(const Box& box) const;
  void check_type(std::string_view attempted, ElementType other) const;
  void check_writable() const;
  void check_open(std::string_view attempted) const;

  void create(const Make& make);
  void load(const std::string& path, bool only_read);
  void commit(const TransferQueue::Context& context, const std::string& new_metadata);
};

}  // namespace outcore
