// The native part of outcore.arrays.disk_array: disk arrays in Python.
#include "outcore/disk_array.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/verify.hpp"
#include "bindings.hpp"
#include "dio/chunks/grid.hpp"
#include "disk_array_arg.hpp"
#include "gate.hpp"
#include "outcore/error.hpp"
#include "placement_arg.hpp"
#include "request.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

Section section(const Numbers& begin, const Numbers& end, const std::optional<std::vector<int>>& order) {
  return {{extents(begin), extents(end)}, order.value_or(std::vector<int>{})};
}

HeldRequest write_section(nb::handle self, nb::handle array, const Numbers& from_begin,
                          const Numbers& from_end, const std::optional<std::vector<int>>& order,
                          const Numbers& begin, const Numbers& end) {
  auto& disk = nb::cast<DiskArray&>(self);
  const auto& global = nb::cast<const GlobalArray&>(array);
  Request request =
      disk.write_all_async(global, section(from_begin, from_end, order), {extents(begin), extents(end)});
  return {std::move(request), Uses{.owner = nb::borrow(self), .other = nb::borrow(array)}, Result::object};
}

HeldRequest read_section(nb::handle self, nb::handle array, const Numbers& to_begin, const Numbers& to_end,
                         const std::optional<std::vector<int>>& order, const Numbers& begin,
                         const Numbers& end) {
  auto& disk = nb::cast<DiskArray&>(self);
  auto& global = nb::cast<GlobalArray&>(array);
  Request request =
      disk.read_all_async(global, section(to_begin, to_end, order), {extents(begin), extents(end)});
  return {std::move(request), Uses{.owner = nb::borrow(self), .other = nb::borrow(array)}, Result::object};
}

/// `memory` has the shape of the box.
template <Access access>
HeldRequest move_block(nb::handle self, nb::handle memory, const Numbers& begin, const Numbers& end) {
  auto& disk = nb::cast<DiskArray&>(self);
  const Box box{extents(begin), extents(end)};
  StridedArg argument(memory, access, box.shape(), size_bytes(disk.type()));
  Request request = access == Access::read ? disk.write_all_async(argument.strided(), box)
                                           : disk.read_all_async(argument.strided(), box);
  return {std::move(request), Uses{.memory = std::move(argument), .owner = nb::borrow(self)}, Result::object};
}

HeldRequest refuse(nb::handle self, const nb::tuple& fields) {
  Request request;
  try {
    throw_fields(fields);
  } catch (const Error& error) {
    request = nb::cast<DiskArray&>(self).refuse(error);
  }
  return {std::move(request), Uses{.owner = nb::borrow(self)}, Result::object};
}

// ---- noncollective access

enum class Operation : std::uint8_t { get, put, accumulate };

/// Begins a transfer; if it `waits`, also completes it.
template <Operation operation>
HeldRequest move_section(nb::handle self, const Numbers& begin, const Numbers& end, const Numbers& step,
                         nb::handle memory, nb::handle alpha, bool waits) {
  auto& array = nb::cast<DiskArrayAccess&>(self);
  const Slices slices(extents(begin), extents(end), extents(step));
  const std::size_t element_bytes = size_bytes(array.type());
  StridedArg argument(memory, operation == Operation::get ? Access::write : Access::read, slices.shape(),
                      element_bytes);
  StridedArg one;
  if (operation == Operation::accumulate) one = StridedArg(alpha, Access::read, {}, element_bytes);
  const Strided strided = argument.strided();
  const std::byte* factor = one.strided().data;
  Request request;
  {
    const nb::gil_scoped_release released;
    if constexpr (operation == Operation::get) {
      if (waits)
        array.get(slices, strided);
      else
        request = array.get_async(slices, strided);
    } else if constexpr (operation == Operation::put) {
      if (waits)
        array.put(slices, strided);
      else
        request = array.put_async(slices, strided);
    } else {
      if (waits)
        array.accumulate(slices, strided, factor);
      else
        request = array.accumulate_async(slices, strided, factor);
    }
  }
  return {std::move(request), Uses{.memory = std::move(argument), .owner = nb::borrow(self)}, Result::object};
}

void prefetch(const DiskArrayAccess& self, const std::vector<std::pair<Numbers, Numbers>>& list) {
  std::vector<Box> boxes;
  boxes.reserve(list.size());
  for (const auto& [begin, end] : list) boxes.push_back({extents(begin), extents(end)});
  const nb::gil_scoped_release released;
  self.prefetch(boxes);
}

void bind_access(nb::module_& module) {
  nb::class_<DiskArrayAccess>(module, "DiskArrayAccess", nb::is_weak_referenceable(),
                              "Native part of outcore.AttachedDiskArray, which checks indices and types.")
      .def_static(
          "attach",
          [](World& world, const nb::bytes& handle, std::int64_t cache_bytes) {
            return std::make_unique<DiskArrayAccess>(
                DiskArrayAccess::attach(world, std::string(handle.c_str(), handle.size()), cache_bytes));
          },
          nb::keep_alive<0, 1>(), "world"_a, "handle"_a, "cache_bytes"_a)
      .def("get", &move_section<Operation::get>, "begin"_a, "end"_a, "step"_a, "memory"_a,
           "alpha"_a = nb::none(), "waits"_a = false)
      .def("put", &move_section<Operation::put>, "begin"_a, "end"_a, "step"_a, "memory"_a,
           "alpha"_a = nb::none(), "waits"_a = false)
      .def("accumulate", &move_section<Operation::accumulate>, "begin"_a, "end"_a, "step"_a, "memory"_a,
           "alpha"_a, "waits"_a = false)
      .def("prefetch", &prefetch, "boxes"_a)
      .def("sync", &DiskArrayAccess::sync, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("shape", [](const DiskArrayAccess& self) { return numbers(self.shape()); })
      .def_prop_ro("chunk", [](const DiskArrayAccess& self) { return numbers(self.chunk()); })
      .def_prop_ro("dtype", [](const DiskArrayAccess& self) { return std::string(name(self.type())); });
}

/// The options of a new array.
struct DiskArrayArguments {
  Extents shape;
  ElementType type{};
  DiskArrayOptions options;
};

void make_arguments(DiskArrayArguments* self, const Numbers& shape, const std::string& type_name,
                    const std::string& path, const Numbers& chunk, const Numbers& typical,
                    const std::string& codec_name, const std::string& placement, bool overwrite,
                    std::int64_t expected_bytes, const std::string& metadata, const DiskArrayCaches& caches,
                    const std::string& identity, int contained) {
  const ElementType type = element_type(type_name);
  new (self) DiskArrayArguments{extents(shape), type,
                                DiskArrayOptions{.path = path,
                                                 .overwrite = overwrite,
                                                 .placement = parse_placement(placement),
                                                 .chunk = extents(chunk),
                                                 .typical = extents(typical),
                                                 .codec = codec(codec_name, size_bytes(type)),
                                                 .expected_bytes = expected_bytes,
                                                 .metadata = metadata,
                                                 .caches = caches,
                                                 .identity = identity,
                                                 .contained = contained}};
}

void make(DiskArray* self, World& world, const nb::callable& gate) {
  const nb::gil_scoped_release released;
  new (self) DiskArray(world, [&](Extents& shape, ElementType& type, DiskArrayOptions& options) {
    auto arguments = brought<DiskArrayArguments>(gate);
    shape = arguments.shape;
    type = arguments.type;
    options = std::move(arguments.options);
  });
}

void bind_arguments(nb::module_& module) {
  nb::class_<DiskArrayCaches>(module, "DiskArrayCaches", "Memory of a process for chunks, in bytes.")
      .def(
          "__init__",
          [](DiskArrayCaches* self, std::int64_t own_bytes, std::int64_t others_bytes) {
            new (self) DiskArrayCaches{own_bytes, others_bytes};
          },
          nb::kw_only(), "own_bytes"_a, "others_bytes"_a);
  nb::class_<DiskArrayArguments>(module, "DiskArrayArguments", "Options of a new disk array.")
      .def("__init__", &make_arguments, nb::kw_only(), "shape"_a, "dtype"_a, "path"_a, "chunk"_a, "typical"_a,
           "codec"_a, "placement"_a, "overwrite"_a, "expected_bytes"_a, "metadata"_a, "caches"_a,
           "identity"_a, "contained"_a);
  nb::class_<DiskArrayOpening>(module, "DiskArrayOpening", "Arguments to open a disk array.")
      .def(
          "__init__",
          [](DiskArrayOpening* self, const std::string& path, bool read_only, const DiskArrayCaches& caches,
             int contained) { new (self) DiskArrayOpening{path, read_only, caches, contained}; },
          nb::kw_only(), "path"_a, "read_only"_a, "caches"_a, "contained"_a = 0);
}

}  // namespace

void bind_disk_array(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  bind_access(module);
  bind_arguments(module);
  nb::class_<DiskArray, DiskArrayAccess>(module, "DiskArray",
                                         "Native part of outcore.DiskArray, which checks arguments.")
      .def("__init__", &make, nb::keep_alive<1, 2>(), "world"_a, "gate"_a)
      .def_static(
          "open",
          [](World& world, const nb::callable& gate) {
            const nb::gil_scoped_release released;
            return std::make_unique<DiskArray>(
                DiskArray::open(world, [&] { return brought<DiskArrayOpening>(gate); }));
          },
          nb::keep_alive<0, 1>(), "world"_a, "gate"_a)
      .def_static("transfer_bytes", &DiskArray::transfer_bytes, "world"_a)
      .def(
          "share",
          [](DiskArray& self, World& parent) {
            std::string handle;
            {
              const nb::gil_scoped_release released;
              handle = self.share(parent);
            }
            return nb::bytes(handle.data(), handle.size());
          },
          "parent"_a)
      .def("write_section", &write_section, "array"_a, "from_begin"_a, "from_end"_a, "order"_a.none(),
           "begin"_a, "end"_a)
      .def("read_section", &read_section, "array"_a, "to_begin"_a, "to_end"_a, "order"_a.none(), "begin"_a,
           "end"_a)
      .def("write_block", &move_block<Access::read>, "memory"_a, "begin"_a, "end"_a)
      .def("read_block", &move_block<Access::write>, "memory"_a, "begin"_a, "end"_a)
      .def("refuse", &refuse, "fields"_a,
           "Take part in a transfer that this process cannot make: all processes get the error with these\n"
           "fields.")
      .def(
          "flush",
          [](DiskArray& self, const nb::callable& gate) {
            const nb::gil_scoped_release released;
            self.flush([&] {
              const auto metadata = brought<std::optional<std::string>>(gate);
              return metadata ? *metadata : self.metadata();
            });
          },
          "gate"_a, "Flush with the metadata that the gate passes; None: the present metadata.")
      .def("close", &DiskArray::close, unlocked)
      .def("drop", &DiskArray::drop, unlocked)
      .def("remove", &DiskArray::remove, unlocked)
      .def("stored_bytes", &DiskArray::stored_bytes, unlocked)
      .def("next_written", &DiskArray::next_written, "chunk"_a, unlocked)
      .def_prop_ro("codec", [](const DiskArray& self) { return store::text(self.codec()); })
      .def_prop_ro("components", &DiskArray::components)
      .def_prop_ro("placement", [](const DiskArray& self) { return placement_name(self.placement()); })
      .def_prop_ro("path", [](const DiskArray& self) { return self.path(); })
      .def_prop_ro(
          "metadata",
          [](const DiskArray& self) { return nb::bytes(self.metadata().data(), self.metadata().size()); })
      .def_prop_ro("identity", [](const DiskArray& self) { return self.identity(); })
      .def_prop_ro("generation", [](const DiskArray& self) { return self.generation(); })
      .def_prop_ro("read_only", &DiskArray::read_only)
      .def_prop_ro("closed", &DiskArray::closed);
  module.def(
      "usual_chunk",
      [](const std::vector<std::int64_t>& shape, std::size_t element_bytes) {
        return numbers(dio::choose_chunk(Extents(std::span(shape.data(), shape.size())), element_bytes));
      },
      "shape"_a, "element_bytes"_a,
      nb::sig("def usual_chunk(shape: Sequence[int], element_bytes: int) -> tuple[int, ...]"),
      "The shape of the chunks that a new disk array without codec gets if none is given.");
  module.def(
      "array_facts",
      [](const std::string& path, int contained) {
        const ArrayFacts facts = array_facts(path, contained);
        nb::dict dict;
        for (const auto& [name, value] : facts.lines) dict[name.c_str()] = value;
        return std::pair(dict, nb::bytes(facts.metadata.data(), facts.metadata.size()));
      },
      "path"_a, "contained"_a = 0,
      nb::sig("def array_facts(path: str, contained: int = 0) -> tuple[dict[str, str], bytes]"),
      "The facts in the manifest of a persistent array, and its metadata. Raises OutcoreError if there\n"
      "is no such array at the path, or if it is damaged.");
  module.def(
      "verify_array",
      [](const std::string& path, int contained) {
        Verification found;
        {
          const nb::gil_scoped_release released;
          found = verify_array(path, contained);
        }
        nb::list damage;  // names in it need not be UTF-8
        for (const std::string& line : found.damage)
          damage.append(
              nb::steal(PyUnicode_DecodeUTF8(line.data(), static_cast<Py_ssize_t>(line.size()), "replace")));
        return std::pair(damage, found.elsewhere);
      },
      "path"_a, "contained"_a = 0,
      nb::sig("def verify_array(path: str, contained: int = 0) -> tuple[list[str], int]"),
      "Read all of a persistent array and check every checksum. Returns one line for each damage, and\n"
      "how many components are not here but on local disks of other nodes.");
}

}  // namespace outcore::python
