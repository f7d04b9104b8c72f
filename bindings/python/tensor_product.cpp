// The native part of outcore.tensor.plan.loop: the loop of products.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "blas.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/sparse_array.hpp"
#include "outcore/world.hpp"
#include "strided_arg.hpp"
#include "string_arg.hpp"
#include "tensor/product.hpp"
#include "tensor/tiled_boxes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using tensor::Boxes;
using tensor::Matrices;
using tensor::Waits;
using Numbers = std::vector<std::int64_t>;
template <class T, int rank>
using Table = nb::ndarray<const T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>;

Numbers numbers(const Extents& extents) {
  return {extents.values().begin(), extents.values().end()};
}

/// Python objects, which are destroyed while the GIL is held.
class Reference {
 public:
  explicit Reference(nb::object object) : object_(new nb::object(std::move(object)), &destroy) {}
  [[nodiscard]] const nb::object& get() const noexcept { return *object_; }

 private:
  static void destroy(nb::object* object) {
    const nb::gil_scoped_acquire held;
    delete object;
  }
  std::shared_ptr<nb::object> object_;
};

nb::object address(const std::byte* data) {
  return nb::cast(reinterpret_cast<std::uintptr_t>(data));
}

/// An array that Python functions move: outcore.tensor.plan.loop.Moves.
class PythonBoxes : public Boxes {
 public:
  explicit PythonBoxes(nb::object moves) : moves_(std::move(moves)) {}
  void get(const Box& box, const Strided& to, Waits& waits) override {
    const nb::gil_scoped_acquire held;
    add(moves_.get().attr("get")(numbers(box.begin), numbers(box.end), address(to.data),
                                 numbers(to.stride_bytes)),
        waits);
  }
  void put(const Box& box, const Strided& from, bool adds, Waits& waits) override {
    const nb::gil_scoped_acquire held;
    add(moves_.get().attr("put")(numbers(box.begin), numbers(box.end), address(from.data),
                                 numbers(from.stride_bytes), adds),
        waits);
  }
  void prefetch(std::span<const Box> boxes) override {
    const nb::gil_scoped_acquire held;
    std::vector<std::pair<Numbers, Numbers>> all;
    for (const Box& box : boxes) all.emplace_back(numbers(box.begin), numbers(box.end));
    moves_.get().attr("prefetch")(all);
  }

 private:
  static void add(const nb::object& requests, Waits& waits) {
    for (const nb::handle each : requests)
      waits.emplace_back([request = Reference(nb::borrow(each))] {
        const nb::gil_scoped_acquire held;
        request.get().attr("wait")();
      });
  }
  Reference moves_;
};

class OwnedMemoryBoxes : public tensor::MemoryBoxes {
 public:
  OwnedMemoryBoxes(StridedArg memory, ElementType type)
      : MemoryBoxes(memory.strided(), type), memory_(std::move(memory)) {}

 private:
  StridedArg memory_;
};

/// Boxes of an array, and the owner of the array, which lives as long.
struct HeldBoxes {
  std::shared_ptr<Boxes> boxes;
  nb::object owner = {};
};

HeldBoxes memory_boxes(nb::handle array, const Numbers& shape, const std::string& dtype, bool writes) {
  const ElementType type = element_type(dtype);
  return {std::make_shared<OwnedMemoryBoxes>(
      StridedArg(array, writes ? Access::write : Access::read, Extents(shape), size_bytes(type)), type)};
}

/// A lock of Python, and its owner.
template <class Mutex>
HeldBoxes locked_boxes(const HeldBoxes& self, nb::object lock) {
  auto kept = std::make_shared<Reference>(lock);
  const std::shared_ptr<Mutex> mutex(kept, &nb::cast<Mutex&>(lock));
  return {std::make_shared<tensor::LockedAdds<Mutex>>(self.boxes, mutex), self.owner};
}

/// Boxes whose elements all have the value one.
HeldBoxes one_boxes(nb::handle one, int rank, const std::string& dtype) {
  const ElementType type = element_type(dtype);
  StridedArg memory(one, Access::read, {}, size_bytes(type));
  Strided strided{memory.strided().data, Extents::filled(rank, 0)};
  struct Ones : tensor::MemoryBoxes {
    Ones(const Strided& elements, ElementType their_type, StridedArg kept)
        : MemoryBoxes(elements, their_type), memory(std::move(kept)) {}
    StridedArg memory;
  };
  return {std::make_shared<Ones>(strided, type, std::move(memory))};
}

HeldBoxes tiled_boxes(std::shared_ptr<tensor::TileTable> table, const HeldBoxes& flat,
                      const std::string& dtype, std::int64_t max_bytes) {
  return {std::make_shared<tensor::TiledBoxes>(std::move(table), flat.boxes, Numbers{}, element_type(dtype),
                                               max_bytes),
          flat.owner};
}

HeldBoxes sparse_boxes(std::shared_ptr<tensor::TileTable> table, nb::object array, std::int64_t max_bytes) {
  auto& native = nb::cast<BlockSparseArray&>(array);
  return {std::make_shared<tensor::TiledBoxes>(
              std::move(table), std::make_shared<tensor::DiskBoxes>(native.storage()),
              Numbers(native.begins().begin(), native.begins().end()), native.type(), max_bytes),
          std::move(array)};
}

void make_table(tensor::TileTable* self, const std::vector<Numbers>& cuts,
                const Table<std::int32_t, 1>& sources, const Table<std::int32_t, 1>& images,
                const std::vector<std::pair<std::vector<int>, int>>& kinds) {
  if (sources.shape(0) != images.shape(0)) throw nb::value_error("two tables of different tiles");
  std::vector<tensor::TileTable::Source> all(sources.shape(0));
  for (std::size_t tile = 0; tile < all.size(); ++tile)
    all[tile] = {sources.data()[tile], images.data()[tile]};
  std::vector<tensor::TileTable::Image> found;
  for (const auto& [axes, sign] : kinds) found.push_back({axes, sign});
  new (self) tensor::TileTable(cuts, std::move(all), std::move(found));
}

// ---- steps ----

using GroupArgument = std::pair<Table<std::int64_t, 3>, std::vector<std::vector<std::int32_t>>>;
using SideArgument = std::pair<std::array<int, 3>, std::vector<std::pair<int, int>>>;

tensor::Group group_of(const GroupArgument& argument) {
  const auto& [cells, members] = argument;
  const std::size_t count = cells.shape(0);
  for (const auto& panel : members)
    for (const std::int32_t cell : panel)
      if (cell < 0 || static_cast<std::size_t>(cell) >= count) throw nb::value_error("a cell is not there");
  return {static_cast<int>(cells.shape(1)), Numbers(cells.data(), cells.data() + cells.size()), members};
}

tensor::Side side_of(const SideArgument& argument, const std::optional<nb::bytes>& flags) {
  tensor::Side side{argument.first, argument.second};
  if (flags) {
    const auto* first = static_cast<const std::uint8_t*>(flags->data());
    side.flags.assign(first, first + flags->size());
  }
  return side;
}

std::vector<tensor::Step> steps_of(const Table<std::int32_t, 2>& table) {
  if (table.shape(1) != 4) throw nb::value_error("a step has four numbers");
  std::vector<tensor::Step> steps;
  steps.reserve(table.shape(0));
  for (std::size_t i = 0; i < table.shape(0); ++i) {
    const std::int32_t* row = table.data() + 4 * i;
    steps.push_back({row[0], row[1], row[2], row[3]});
  }
  return steps;
}

auto fetched_panels(const Table<std::int32_t, 2>& table, const std::array<int, 2>& slots) {
  const auto found = tensor::fetched(steps_of(table), slots);
  auto data = std::make_unique<bool[]>(2 * found.size());
  for (bool* to = data.get(); const auto& each : found) to = std::ranges::copy(each, to).out;
  nb::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<bool*>(p); });
  return nb::ndarray<bool, nb::numpy, nb::ndim<2>>(data.release(), {found.size(), 2}, owner);
}

void make_steps(tensor::Steps* self, const std::array<GroupArgument, 4>& groups,
                const std::array<SideArgument, 3>& sides,
                const std::array<std::optional<nb::bytes>, 3>& flags, const Table<std::int32_t, 2>& steps,
                const Numbers& task_ends, bool half) {
  tensor::Steps made{{group_of(groups[0]), group_of(groups[1]), group_of(groups[2]), group_of(groups[3])},
                     {side_of(sides[0], flags[0]), side_of(sides[1], flags[1]), side_of(sides[2], flags[2])},
                     steps_of(steps),
                     task_ends,
                     half};
  made.check();
  new (self) tensor::Steps(std::move(made));
}

// ---- products ----

using SharesArgument = std::pair<int, std::vector<Numbers>>;

/// For elements that only Python multiplies.
tensor::Multiply by_python(nb::object function) {
  return [function = Reference(std::move(function))](const Matrices& left, const Matrices& right,
                                                     const Matrices& out, bool add) {
    const nb::gil_scoped_acquire held;
    const auto described = [](const Matrices& each) {
      return nb::make_tuple(address(each.data), Numbers(each.count.begin(), each.count.end()),
                            Numbers(each.stride.begin(), each.stride.end()));
    };
    function.get()(described(left), described(right), described(out), add);
  };
}

nb::tuple carry_out(const tensor::Steps& steps, const HeldBoxes& left, const HeldBoxes& right,
                    const HeldBoxes& out, const std::array<int, 2>& slots, int results, std::int64_t unit,
                    int hinted, int threads, bool add, bool one_put, std::size_t element_bytes,
                    const nb::object& multiply, nb::handle alpha, Counter* counter, nb::object watch,
                    tensor::NodePanels* memory, const std::optional<SharesArgument>& shares) {
  tensor::Sharing sharing{.memory = memory};
  if (shares) std::tie(sharing.shares.group, sharing.shares.bounds) = *shares;
  const tensor::Execution how{.slots = slots,
                              .results = results,
                              .unit = unit,
                              .hinted = hinted,
                              .threads = threads,
                              .add = add,
                              .one_put = one_put,
                              .element_bytes = element_bytes};
  tensor::Multiply function;
  if (nb::isinstance<nb::str>(multiply)) {
    const BufferArg factor(alpha, Access::read);
    const ElementType type = element_type(nb::cast<std::string>(multiply));
    if (factor.span().size() != size_bytes(type)) throw nb::value_error("alpha is not one element");
    function = tensor::multiply_by(scipy_blas(), type, factor.span().data());
  } else {
    function = by_python(multiply);
  }
  const tensor::Watch told = [watch = Reference(std::move(watch))](double fraction, std::int64_t tasks) {
    const nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return nb::cast<bool>(watch.get()(fraction, tasks));
  };
  tensor::Moved moved;
  {
    const nb::gil_scoped_release released;
    moved = tensor::carry_out(steps, how, {*left.boxes, *right.boxes, *out.boxes}, function, counter, told,
                              sharing);
  }
  return nb::make_tuple(moved.got[0], moved.got[1], moved.put, moved.flops);
}

}  // namespace

void bind_tensor_product(nb::module_& module) {
  nb::class_<std::mutex>(
      module, "Mutex",
      "A lock between threads, of Python and of native code, used in a `with` block. Other\n"
      "Python threads run while one waits for it.")
      .def(nb::init<>())
      .def(
          "__enter__",
          [](nb::object self) {
            {
              auto& mutex = nb::cast<std::mutex&>(self);
              const nb::gil_scoped_release released;
              mutex.lock();
            }
            return self;
          },
          nb::sig("def __enter__(self) -> Mutex"))
      .def(
          "__exit__", [](std::mutex& self, const nb::args&) { self.unlock(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  nb::class_<HeldBoxes>(module, "Boxes", "An array as products see it: they get and put boxes of it.")
      .def_static("of_memory", &memory_boxes, "array"_a, "shape"_a, "dtype"_a, "writes"_a,
                  "Boxes of an array of NumPy.")
      .def_static("of_ones", &one_boxes, "one"_a, "rank"_a, "dtype"_a, "Boxes whose elements are all `one`.")
      .def_static(
          "of_global",
          [](nb::object array) {
            return HeldBoxes{std::make_shared<tensor::GlobalBoxes>(nb::cast<GlobalArray&>(array)), array};
          },
          "array"_a, "Boxes of the native part of a GlobalArray.")
      .def_static(
          "of_disk",
          [](nb::object array) {
            return HeldBoxes{std::make_shared<tensor::DiskBoxes>(nb::cast<DiskArrayAccess&>(array)), array};
          },
          "array"_a, "Boxes of the native part of a disk array.")
      .def_static(
          "of_python",
          [](nb::object moves) { return HeldBoxes{std::make_shared<PythonBoxes>(std::move(moves))}; },
          "moves"_a, "Boxes of an object that moves them: outcore.tensor.plan.loop.Moves.")
      .def_static("of_tiles", &tiled_boxes, "table"_a, "flat"_a, "dtype"_a, "max_bytes"_a,
                  "Boxes of tiles that lie in an array of one dimension.")
      .def_static("of_sparse", &sparse_boxes, "table"_a, "array"_a, "max_bytes"_a,
                  "Boxes of the native part of a BlockSparseArray.")
      .def(
          "section",
          [](const HeldBoxes& self, int axis, std::int64_t begin) {
            return HeldBoxes{std::make_shared<tensor::SectionBoxes>(self.boxes, axis, begin), self.owner};
          },
          "axis"_a, "begin"_a, "The part of an array that begins at an index along an axis.")
      .def(
          "adding_under",
          [](const HeldBoxes& self, nb::object lock) {
            if (nb::isinstance<Lock>(lock)) return locked_boxes<Lock>(self, std::move(lock));
            return locked_boxes<std::mutex>(self, std::move(lock));
          },
          "lock"_a, nb::sig("def adding_under(self, lock: Mutex | Lock) -> Boxes"),
          "The array, with each add under the lock.");
  nb::class_<tensor::TileTable>(
      module, "TileTable", "Which stored tile each tile of a layout comes from; see tensor/tiled_boxes.hpp.")
      .def("__init__", &make_table, "cuts"_a, "numbers"_a, "images"_a, "kinds"_a);
  nb::class_<tensor::Steps>(module, "Steps",
                            "The panels that a product multiplies, and their order; see tensor/product.hpp.")
      .def("__init__", &make_steps, "groups"_a, "sides"_a, "flags"_a.none(), "steps"_a, "task_ends"_a,
           "half"_a = false);
  nb::class_<tensor::NodePanels>(
      module, "NodePanels",
      "Memory that the processes of a node share for a product; see tensor/shared_panels.hpp.\n"
      "Construction is collective.")
      .def(
          "__init__",
          [](tensor::NodePanels* self, World& world, const std::array<int, 2>& slots,
             const std::array<std::int64_t, 2>& largest_bytes, std::int64_t units) {
            const nb::gil_scoped_release released;
            new (self) tensor::NodePanels(world, slots, largest_bytes, units);
          },
          "world"_a, "slots"_a, "largest_bytes"_a, "units"_a, nb::keep_alive<1, 2>())
      .def("fail", &tensor::NodePanels::fail,
           "Tells the other processes that this one failed: they wait for its panels no more.");
  module.def(
      "fetched_panels", &fetched_panels, "steps"_a, "slots"_a,
      "[n][2]: whether one process that carries out these steps fetches the left and the right panel of\n"
      "each into its slots.");
  module.def(
      "tensor_product", &carry_out, "steps"_a, "left"_a, "right"_a, "out"_a, nb::kw_only(), "slots"_a,
      "results"_a, "unit"_a, "hinted"_a, "threads"_a, "add"_a, "one_put"_a, "element_bytes"_a, "multiply"_a,
      "alpha"_a, "counter"_a.none(), "watch"_a, "memory"_a = nb::none(), "shares"_a = nb::none(),
      "Does this process's part of a product. Returns the elements got of the left and of the right\n"
      "operand, the elements put, and the operations. `multiply`: the name of a type that BLAS\n"
      "multiplies, or a function. `watch`: called now and then with the fraction of the work that is\n"
      "done and the number of complete tasks; if it returns true, the work ends. `memory`, `shares`: if\n"
      "processes share panels, their common memory; the group of axes of the result that they divide,\n"
      "and the bounds of their shares.");
}

}  // namespace outcore::python
