// The native part of outcore.arrays.global_array: global arrays in Python.
#include "outcore/global_array.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "gate.hpp"
#include "outcore/error.hpp"
#include "outcore/node_array.hpp"
#include "request.hpp"
#include "strided_arg.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using Numbers = std::vector<std::int64_t>;
using Indices = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Numbers numbers(const Extents& extents) {
  return {extents.values().begin(), extents.values().end()};
}

Extents extents(const Numbers& values) {
  return Extents(std::span(values.data(), values.size()));
}

// ---- distributions ----

void bind_distribution(nb::module_& module) {
  nb::class_<Distribution>(
      module, "Distribution",
      "Which process holds which elements of an array: a grid of processes over the dimensions, the last\n"
      "varying fastest. Made for a shape and a number of processes; the same on all of them.")
      .def_static(
          "regular",
          [](const Numbers& shape, int processes) {
            return Distribution::regular(extents(shape), processes);
          },
          "shape"_a, "processes"_a,
          "Blocks as equal as can be, on a grid chosen so that patches are nearly cubic.")
      .def_static(
          "irregular",
          [](const Numbers& shape, int processes, const std::vector<Numbers>& begins) {
            return Distribution::irregular(extents(shape), processes, begins);
          },
          "shape"_a, "processes"_a, "begins"_a,
          "For each dimension the first indices of its blocks, increasing from 0. The product of the\n"
          "numbers of blocks is at most the number of processes.")
      .def_static(
          "block_cyclic",
          [](const Numbers& shape, int processes, const Numbers& block, const std::optional<Numbers>& grid) {
            return Distribution::block_cyclic(extents(shape), processes, extents(block),
                                              grid ? std::optional(extents(*grid)) : std::nullopt);
          },
          "shape"_a, "processes"_a, "block"_a, "grid"_a = nb::none(),
          "Blocks dealt out to a grid in turn, as ScaLAPACK does; the grid is chosen if not given.")
      .def_prop_ro("kind",
                   [](const Distribution& self) {
                     return self.kind() == Distribution::Kind::regular     ? "regular"
                            : self.kind() == Distribution::Kind::irregular ? "irregular"
                                                                           : "block_cyclic";
                   })
      .def_prop_ro(
          "shape", [](const Distribution& self) { return nb::tuple(nb::cast(numbers(self.shape()))); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "grid", [](const Distribution& self) { return nb::tuple(nb::cast(numbers(self.grid()))); },
          nb::sig("def grid(self) -> tuple[int, ...]"), "Processes along each dimension.")
      .def_prop_ro(
          "block", [](const Distribution& self) { return nb::tuple(nb::cast(numbers(self.block()))); },
          nb::sig("def block(self) -> tuple[int, ...]"), "Shape of the (largest) blocks.")
      .def_prop_ro("processes", &Distribution::processes)
      .def(
          "owner", [](const Distribution& self, const Numbers& index) { return self.owner(extents(index)); },
          "index"_a, "Rank of the process that holds an element.")
      .def(
          "patch",
          [](const Distribution& self, int process) {
            const Box box = self.patch(process);
            return std::pair(numbers(box.begin), numbers(box.end));
          },
          "process"_a, "(begin, end) of the box that a process holds; OutcoreError (EINVAL) if block-cyclic.")
      .def(
          "local_shape",
          [](const Distribution& self, int process) {
            return nb::tuple(nb::cast(numbers(self.local_shape(process))));
          },
          nb::sig("def local_shape(self, process: int) -> tuple[int, ...]"), "process"_a,
          "Shape of the memory of a process.")
      .def(
          "parts_of",
          [](const Distribution& self, int process, const Numbers& begin, const Numbers& end) {
            const Box box{extents(begin), extents(end)};
            if (!Box::whole(self.shape()).contains(box))
              throw Error(EINVAL, {.attempted = "parts of the box " + box.text(),
                                   .detail = "it is not inside of the shape " + self.shape().text()});
            const Extents local = self.local_shape(process);
            std::vector<std::vector<Numbers>> parts;
            self.for_each_part_of(process, box, [&](int, const Box& part, std::int64_t element) {
              Extents at = local;
              for (int i = local.rank() - 1; i >= 0; --i) {
                at[i] = element % local[i];
                element /= local[i];
              }
              parts.push_back({numbers(part.begin), numbers(part.end), numbers(at)});
            });
            return parts;
          },
          "process"_a, "begin"_a, "end"_a,
          "The parts of a box that a process holds: for each block [begin, end, index of its first element\n"
          "in the memory of the process].")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", &Distribution::fingerprint)
      .def("__repr__", [](const Distribution& self) {
        return "<outcore.Distribution of " + self.shape().text() + ": " + self.text() + ">";
      });
}

// ---- arrays ----

void make(GlobalArray* self, World& world, const nb::callable& gate) {
  const nb::gil_scoped_release released;
  new (self) GlobalArray(world, [&](ElementType& type) {
    std::optional<Distribution> distribution;
    take_brought(gate, [&](const nb::object& value) {
      const auto [type_name, how] = nb::cast<std::pair<std::string, nb::object>>(value);
      type = element_type(type_name);
      distribution = nb::cast<const Distribution&>(how);
    });
    return std::move(*distribution);
  });
}

HeldRequest start(nb::handle self, const Numbers& begin, const Numbers& end, const Numbers& step,
                  nb::handle memory, Access access, auto start_request) {
  auto& array = nb::cast<GlobalArray&>(self);
  const Slices slices(extents(begin), extents(end), extents(step));
  Uses uses{.memory = StridedArg(memory, access, slices.shape(), array.element_bytes()),
            .owner = nb::borrow(self)};
  const Strided strided = uses.memory.strided();
  return start_held(std::move(uses), Result::object, [&] { return start_request(array, slices, strided); });
}

HeldRequest get(nb::handle self, const Numbers& begin, const Numbers& end, const Numbers& step,
                nb::handle memory) {
  return start(self, begin, end, step, memory, Access::write,
               [](const GlobalArray& array, const Slices& slices, const Strided& strided) {
                 return array.get_async(slices, strided);
               });
}

HeldRequest put(nb::handle self, const Numbers& begin, const Numbers& end, const Numbers& step,
                nb::handle memory) {
  return start(self, begin, end, step, memory, Access::read,
               [](GlobalArray& array, const Slices& slices, const Strided& strided) {
                 return array.put_async(slices, strided);
               });
}

HeldRequest accumulate(nb::handle self, const Numbers& begin, const Numbers& end, const Numbers& step,
                       nb::handle memory, nb::handle alpha) {
  const StridedArg one(alpha, Access::read, {}, nb::cast<GlobalArray&>(self).element_bytes());
  return start(self, begin, end, step, memory, Access::read,
               [&](GlobalArray& array, const Slices& slices, const Strided& strided) {
                 return array.accumulate_async(slices, strided, one.strided().data);
               });
}

/// Contiguous memory with one element for each index; throws for other memory.
BufferArg elements(const GlobalArray& array, const Indices& indices, nb::handle memory, Access access) {
  BufferArg buffer(memory, access);
  if (static_cast<int>(indices.shape(1)) != array.shape().rank())
    throw nb::value_error("indices must be of shape [count][dimensions of the array]");
  if (buffer.span().size() != indices.shape(0) * array.element_bytes())
    throw nb::value_error("there must be as many elements as indices");
  return buffer;
}

std::span<const std::int64_t> flat(const Indices& indices) {
  return {indices.data(), indices.size()};
}

/// A NumPy array over contiguous memory that `owner` keeps.
nb::object view(ElementType type, std::byte* memory, const Extents& shape, nb::handle owner) {
  std::vector<std::size_t> sizes;
  for (const std::int64_t extent : shape.values()) sizes.push_back(static_cast<std::size_t>(extent));
  return visit(type, [&](auto zero) {
    using Element = decltype(zero);
    return nb::cast(nb::ndarray<nb::numpy, Element, nb::c_contig>(memory, sizes.size(), sizes.data(), owner));
  });
}

nb::object local(nb::handle self) {
  const auto& array = nb::cast<GlobalArray&>(self);
  return view(array.type(), array.local().data, array.distribution().local_shape(array.world().rank()), self);
}

void bind_array(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<GlobalArray>(module, "GlobalArray", nb::is_weak_referenceable(),
                          "Native part of outcore.GlobalArray, which checks indices and types.")
      .def("__init__", &make, nb::keep_alive<1, 2>(), "world"_a, "gate"_a)
      .def_prop_ro("distribution", [](const GlobalArray& self) { return self.distribution(); })
      .def_prop_ro("local", &local, nb::sig("def local(self) -> numpy.typing.NDArray"),
                   "NumPy view of the memory of this process.")
      .def_prop_ro("closed", &GlobalArray::closed)
      .def_prop_ro("number", &GlobalArray::number,
                   "A number that is equal at all processes, and different for each array of the world.")
      .def("get", &get, "begin"_a, "end"_a, "step"_a, "memory"_a)
      .def("put", &put, "begin"_a, "end"_a, "step"_a, "memory"_a)
      .def("accumulate", &accumulate, "begin"_a, "end"_a, "step"_a, "memory"_a, "alpha"_a)
      .def(
          "gather",
          [](const GlobalArray& self, const Indices& indices, nb::handle memory) {
            const BufferArg buffer = elements(self, indices, memory, Access::write);
            const nb::gil_scoped_release released;
            self.gather(flat(indices), buffer.span().data());
          },
          "indices"_a, "memory"_a)
      .def(
          "scatter",
          [](GlobalArray& self, const Indices& indices, nb::handle memory) {
            const BufferArg buffer = elements(self, indices, memory, Access::read);
            const nb::gil_scoped_release released;
            self.scatter(flat(indices), buffer.span().data());
          },
          "indices"_a, "memory"_a)
      .def(
          "scatter_accumulate",
          [](GlobalArray& self, const Indices& indices, nb::handle memory, nb::handle alpha) {
            const BufferArg buffer = elements(self, indices, memory, Access::read);
            const StridedArg one(alpha, Access::read, {}, self.element_bytes());
            const nb::gil_scoped_release released;
            self.scatter_accumulate(flat(indices), buffer.span().data(), one.strided().data);
          },
          "indices"_a, "memory"_a, "alpha"_a)
      .def(
          "read_increment",
          [](GlobalArray& self, const Numbers& index, std::int64_t value) {
            return self.read_increment(extents(index), value);
          },
          unlocked, "index"_a, "value"_a)
      .def("sync", &GlobalArray::sync, unlocked)
      .def("close", &GlobalArray::close, unlocked);
}

void bind_node_array(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<NodeArray>(module, "NodeArray", nb::is_weak_referenceable(),
                        "Native part of outcore.NodeArray, which checks the type.")
      .def(
          "__init__",
          [](NodeArray* self, World& world, const nb::callable& gate) {
            const nb::gil_scoped_release released;
            new (self) NodeArray(world, [&](ElementType& type) {
              const auto [type_name, shape] = brought<std::pair<std::string, Numbers>>(gate);
              type = element_type(type_name);
              return extents(shape);
            });
          },
          nb::keep_alive<1, 2>(), "world"_a, "gate"_a)
      .def_prop_ro(
          "view",
          [](nb::handle self) {
            const auto& array = nb::cast<NodeArray&>(self);
            return view(array.type(), array.view().data, array.shape(), self);
          },
          nb::sig("def view(self) -> numpy.typing.NDArray"), "NumPy view of the whole array.")
      .def_prop_ro("closed", &NodeArray::closed)
      .def("barrier", &NodeArray::barrier, unlocked)
      .def("post", &NodeArray::post, "element"_a, "value"_a)
      .def(
          "wait_for",
          [](NodeArray& array, std::int64_t element, std::int32_t least, std::int64_t timeout_us) {
            return array.wait_for(element, least, std::chrono::microseconds(timeout_us));
          },
          unlocked, "element"_a, "least"_a, "timeout_us"_a)
      .def("close", &NodeArray::close, unlocked);
}

}  // namespace

void bind_global_array(nb::module_& module) {
  bind_distribution(module);
  bind_array(module);
  bind_node_array(module);
}

}  // namespace outcore::python
