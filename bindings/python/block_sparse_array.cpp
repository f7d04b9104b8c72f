// The native part of outcore.arrays.sparse_array: block-sparse arrays in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "buffer_arg.hpp"
#include "disk_array_arg.hpp"
#include "gate.hpp"
#include "outcore/error.hpp"
#include "outcore/sparse_array.hpp"
#include "placement_arg.hpp"
#include "request.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

enum class Operation : std::uint8_t { get, put, accumulate };

/// Begins a transfer; if it `waits`, also completes it. `alpha`: one element.
template <Operation operation>
HeldRequest move_tile(nb::handle self, const Numbers& tile, nb::handle memory, nb::handle alpha, bool waits) {
  auto& array = nb::cast<BlockSparseArray&>(self);
  BufferArg argument(memory, operation == Operation::get ? Access::write : Access::read);
  std::optional<BufferArg> one;
  if (operation == Operation::accumulate) one.emplace(alpha, Access::read);
  if (one && one->span().size() != size_bytes(array.type()))
    throw nb::value_error("alpha is not one element");
  const auto span = argument.span();
  const std::byte* factor = one ? one->span().data() : nullptr;
  Request request;
  {
    const nb::gil_scoped_release released;
    const Extents index = extents(tile);
    if constexpr (operation == Operation::get) {
      if (waits)
        array.get_tile(index, span);
      else
        request = array.get_tile_async(index, span);
    } else if constexpr (operation == Operation::put) {
      if (waits)
        array.put_tile(index, span);
      else
        request = array.put_tile_async(index, span);
    } else {
      if (waits)
        array.accumulate_tile(index, span, factor);
      else
        request = array.accumulate_tile_async(index, span, factor);
    }
  }
  return {std::move(request), using_buffer(std::move(argument), nb::borrow(self)), Result::object};
}

/// The options of a new array.
struct BlockSparseArguments {
  TileMap map;
  ElementType type{};
  DiskArrayOptions options;
};

void make_arguments(BlockSparseArguments* self, const std::vector<Numbers>& boundaries,
                    const nb::bytes& nonzero, const std::string& type_name, const std::string& path,
                    const std::string& codec_name, const std::string& placement, bool overwrite,
                    const std::string& metadata, const DiskArrayCaches& caches) {
  const auto* flags = static_cast<const char*>(nonzero.data());
  const ElementType type = element_type(type_name);
  new (self) BlockSparseArguments{TileMap(boundaries, std::vector<bool>(flags, flags + nonzero.size())), type,
                                  DiskArrayOptions{.path = path,
                                                   .overwrite = overwrite,
                                                   .placement = parse_placement(placement),
                                                   .codec = codec(codec_name, size_bytes(type)),
                                                   .metadata = metadata,
                                                   .caches = caches}};
}

void make(BlockSparseArray* self, World& world, const nb::callable& gate) {
  const nb::gil_scoped_release released;
  new (self) BlockSparseArray(world, [&](TileMap& map, ElementType& type, DiskArrayOptions& options) {
    auto arguments = brought<BlockSparseArguments>(gate);
    map = std::move(arguments.map);
    type = arguments.type;
    options = std::move(arguments.options);
  });
}

std::vector<Numbers> nonzero_tiles(const BlockSparseArray& self) {
  std::vector<Numbers> tiles;
  for (std::int64_t k = 0; k < self.map().count(); ++k) {
    const Extents tile = self.map().tile(k);
    tiles.emplace_back(tile.values().begin(), tile.values().end());
  }
  return tiles;
}

}  // namespace

void bind_block_sparse_array(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<BlockSparseArguments>(module, "BlockSparseArguments", "Options of a new block-sparse array.")
      .def("__init__", &make_arguments, nb::kw_only(), "boundaries"_a, "nonzero"_a, "dtype"_a, "path"_a,
           "codec"_a, "placement"_a, "overwrite"_a, "metadata"_a, "caches"_a);
  nb::class_<BlockSparseArray>(module, "BlockSparseArray", nb::is_weak_referenceable(),
                               "Native part of outcore.BlockSparseArray, which checks arguments.")
      .def("__init__", &make, nb::keep_alive<1, 2>(), "world"_a, "gate"_a)
      .def_static(
          "open",
          [](World& world, const nb::callable& gate) {
            const nb::gil_scoped_release released;
            return std::make_unique<BlockSparseArray>(
                BlockSparseArray::open(world, [&] { return brought<DiskArrayOpening>(gate); }));
          },
          nb::keep_alive<0, 1>(), "world"_a, "gate"_a)
      .def("get", &move_tile<Operation::get>, "tile"_a, "memory"_a, "alpha"_a = nb::none(), "waits"_a = false)
      .def("put", &move_tile<Operation::put>, "tile"_a, "memory"_a, "alpha"_a = nb::none(), "waits"_a = false)
      .def("accumulate", &move_tile<Operation::accumulate>, "tile"_a, "memory"_a, "alpha"_a,
           "waits"_a = false)
      .def(
          "prefetch",
          [](const BlockSparseArray& self, const std::vector<Numbers>& list) {
            std::vector<Extents> tiles;
            tiles.reserve(list.size());
            for (const Numbers& each : list) tiles.push_back(extents(each));
            const nb::gil_scoped_release released;
            self.prefetch(tiles);
          },
          "tiles"_a)
      .def(
          "owner",
          [](const BlockSparseArray& self, const Numbers& tile) { return self.owner(extents(tile)); },
          "tile"_a)
      .def_prop_ro(
          "count", [](const BlockSparseArray& self) { return self.map().count(); },
          "Number of nonzero tiles.")
      .def("nonzero_tiles", &nonzero_tiles, "Indices of the nonzero tiles, in order of their numbers.")
      .def("sync", &BlockSparseArray::sync, unlocked)
      .def(
          "flush",
          [](BlockSparseArray& self, const nb::callable& gate) {
            const nb::gil_scoped_release released;
            self.flush([&] {
              const auto metadata = brought<std::optional<std::string>>(gate);
              return metadata ? *metadata : self.metadata();
            });
          },
          "gate"_a, "Flush with the metadata that the gate passes; None: the present metadata.")
      .def(
          "close", [](BlockSparseArray& self) { self.storage().close(); }, unlocked)
      .def(
          "drop", [](BlockSparseArray& self) { self.storage().drop(); }, unlocked)
      .def(
          "remove", [](BlockSparseArray& self) { self.storage().remove(); }, unlocked)
      .def(
          "stored_bytes", [](BlockSparseArray& self) { return self.storage().stored_bytes(); }, unlocked)
      .def_prop_ro("shape", [](const BlockSparseArray& self) { return numbers(self.map().shape()); })
      .def_prop_ro("grid", [](const BlockSparseArray& self) { return numbers(self.map().grid()); })
      .def_prop_ro("boundaries", [](const BlockSparseArray& self) { return self.map().boundaries(); })
      .def_prop_ro("dtype", [](const BlockSparseArray& self) { return std::string(name(self.type())); })
      .def_prop_ro("path", [](const BlockSparseArray& self) { return self.storage().path(); })
      .def_prop_ro("metadata",
                   [](const BlockSparseArray& self) {
                     return nb::bytes(self.metadata().data(), self.metadata().size());
                   })
      .def_prop_ro("read_only", [](const BlockSparseArray& self) { return self.storage().read_only(); })
      .def_prop_ro("closed", [](const BlockSparseArray& self) { return self.storage().closed(); });
}

}  // namespace outcore::python
