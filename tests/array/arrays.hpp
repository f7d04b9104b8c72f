// For tests of arrays: worlds of threads, random boxes, and arrays whose elements are their own positions.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "outcore/box.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/global_array.hpp"
#include "outcore/world.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

namespace outcore::test {

inline void in_worlds(int processes, const WorldOptions& options, const std::function<void(World&)>& body) {
  transport::run_threads(processes, [&](std::unique_ptr<transport::Transport> transport) {
    World world(std::move(transport), options);
    body(world);
    world.close();
  });
}

inline void for_each_index(const Box& box, const std::function<void(const Extents&)>& visit) {
  for (std::int64_t k = 0; k < box.volume(); ++k) {
    Extents index = box.begin;
    std::int64_t rest = k;
    for (int i = box.rank() - 1; i >= 0; --i) {
      const std::int64_t side = box.end[i] - box.begin[i];
      index[i] += rest % side;
      rest /= side;
    }
    visit(index);
  }
}

/// An array in ordinary memory that does what the real one should do.
struct Model {
  explicit Model(const Extents& extents)
      : shape(extents), data(static_cast<std::size_t>(extents.product())) {}

  [[nodiscard]] std::size_t at(const Extents& index) const {
    std::int64_t position = 0;
    for (int i = 0; i < shape.rank(); ++i) position = position * shape[i] + index[i];
    return static_cast<std::size_t>(position);
  }
  [[nodiscard]] Strided memory(const Box& box) {
    const Extents strides = row_major(shape, sizeof(double));
    auto* first = reinterpret_cast<std::byte*>(data.data());
    for (int i = 0; i < shape.rank(); ++i) first += box.begin[i] * strides[i];
    return {first, strides};
  }

  Extents shape;
  std::vector<double> data;
};

inline WorldOptions options_in(const TemporaryDirectory& directory, bool distant = false) {
  return {.memory_bytes = 1 << 30, .scratch = directory.path(), .node_for_each_process = distant};
}

inline double value_at(const Extents& index, double salt) {
  double value = salt;
  for (const std::int64_t each : index.values()) value = value * 131 + static_cast<double>(each);
  return value;
}

/// Every process puts its share of the section.
inline void fill(GlobalArray& array, double salt) {
  Model model(array.shape());
  const Box all = Box::whole(array.shape());
  for_each_index(all, [&](const Extents& index) { model.data[model.at(index)] = value_at(index, salt); });
  if (array.world().rank() == 0) array.put(all, model.memory(all));
  array.sync();
}

inline int errno_of(const std::function<void()>& body) {
  return check::throws<Error>(body).errno_value();
}

inline Extents random_shape(std::mt19937& random, int rank, std::int64_t most) {
  Extents shape = Extents::filled(rank, 1);
  for (int i = 0; i < rank; ++i) shape[i] = 1 + static_cast<std::int64_t>(random()) % most;
  return shape;
}

inline Box random_box(std::mt19937& random, const Extents& shape) {
  Box box = Box::whole(shape);
  for (int i = 0; i < shape.rank(); ++i) {
    box.begin[i] = static_cast<std::int64_t>(random()) % shape[i];
    box.end[i] = box.begin[i] + 1 + static_cast<std::int64_t>(random()) % (shape[i] - box.begin[i]);
  }
  return box;
}

}  // namespace outcore::test
