// Worlds of threads, and arrays whose elements are their own positions.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/global_array.hpp"
#include "outcore/world.hpp"
#include "support/check.hpp"

namespace arrays {

using namespace outcore;

inline constexpr std::int64_t budget_bytes = 64 << 20;

/// Runs `body` in a world of `processes` threads; with `apart` each thread is a node of its own, so that it
/// can load and store its own patch only.
inline void run(int processes, bool apart, const std::function<void(World&)>& body) {
  transport::run_threads(processes, [&](std::unique_ptr<transport::Transport> transport) {
    World world(std::move(transport),
                {.memory_bytes = budget_bytes, .scratch = "/tmp", .node_for_each_process = apart});
    body(world);
  });
}

/// Does this for 1 to 4 processes, on one node and each on a node of its own.
inline void run_all(const std::function<void(World&)>& body) {
  for (const bool apart : {false, true})
    for (int processes = 1; processes <= 4; ++processes) run(processes, apart, body);
}

template <class Element>
Strided row_major_memory(std::vector<Element>& memory, const Extents& shape) {
  return {reinterpret_cast<std::byte*>(memory.data()), row_major(shape, sizeof(Element))};
}

/// What element `index` of an array holds in these tests: its position.
inline std::int64_t position(const Extents& shape, const Extents& index) {
  std::int64_t at = 0;
  for (int i = 0; i < shape.rank(); ++i) at = at * shape[i] + index[i];
  return at;
}

/// Index number `k` of a box, in row-major order.
inline Extents index_of(const Box& box, std::int64_t k) {
  const Extents shape = box.shape();
  Extents index = box.begin;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    index[i] += k % shape[i];
    k /= shape[i];
  }
  return index;
}

/// All elements of a box, in row-major order, as `fill_with_positions` leaves them.
template <class Element>
std::vector<Element> positions(const Extents& shape, const Box& box) {
  std::vector<Element> values;
  for (std::int64_t k = 0; k < box.volume(); ++k)
    values.push_back(static_cast<Element>(position(shape, index_of(box, k))));
  return values;
}

/// Collective. Each process writes its own patch in memory.
template <class Element>
void fill_with_positions(GlobalArray& array) {
  const Distribution& distribution = array.distribution();
  const Strided local = array.local();
  distribution.for_each_part_of(
      array.world().rank(), Box::whole(array.shape()), [&](int, const Box& part, std::int64_t element) {
        auto values = positions<Element>(array.shape(), part);
        std::byte* to = local.data + element * std::int64_t(sizeof(Element));
        copy_strided(to, local.stride_bytes, reinterpret_cast<const std::byte*>(values.data()),
                     row_major(part.shape(), sizeof(Element)), part.shape(), sizeof(Element));
      });
  array.sync();
}

}  // namespace arrays
