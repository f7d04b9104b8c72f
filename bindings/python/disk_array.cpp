// Disk arrays in Python: what outcore.disk_array is made of.
#include "outcore/array/disk_array.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "outcore/array/verify.hpp"
#include "outcore/error.hpp"
#include "strided_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using Numbers = std::vector<std::int64_t>;

Extents extents(const Numbers& values) {
  return Extents(std::span(values.data(), values.size()));
}

nb::tuple numbers(const Extents& extents) {
  nb::list list;
  for (const std::int64_t each : extents.values()) list.append(each);
  return nb::tuple(list);
}

/// A collective transfer with what it uses, which stays alive until it is complete, also when the Python
/// object goes before that: it is then kept here, and let go when another one is made.
class HeldTransfer {
 public:
  HeldTransfer(CollectiveRequest request, nb::object array, nb::object other, StridedArg memory)
      : request_(std::move(request)), held_{std::move(array), std::move(other), std::move(memory)} {
    std::erase_if(abandoned(), [](const Abandoned& each) { return each.first.done(); });
  }
  ~HeldTransfer() {
    if (!request_.done()) abandoned().emplace_back(std::move(request_), std::move(held_));
  }
  HeldTransfer(HeldTransfer&&) = delete;

  void wait() {
    {
      const nb::gil_scoped_release released;
      request_.wait();
    }
    held_ = {};
  }
  bool test() {
    if (!request_.test()) return false;
    held_ = {};
    return true;
  }
  [[nodiscard]] bool done() const noexcept { return request_.done(); }

 private:
  struct Held {
    nb::object array, other;
    StridedArg memory;
  };
  using Abandoned = std::pair<CollectiveRequest, Held>;
  static std::vector<Abandoned>& abandoned() {
    static auto* const list = new std::vector<Abandoned>;  // outlives the interpreter
    return *list;
  }

  CollectiveRequest request_;
  Held held_;
};

Section section(const Numbers& begin, const Numbers& end, const std::optional<std::vector<int>>& order) {
  return {{extents(begin), extents(end)}, order.value_or(std::vector<int>{})};
}

std::unique_ptr<HeldTransfer> write_section(nb::handle self, nb::handle array, const Numbers& from_begin,
                                            const Numbers& from_end,
                                            const std::optional<std::vector<int>>& order,
                                            const Numbers& begin, const Numbers& end) {
  auto& disk = nb::cast<DiskArray&>(self);
  const auto& global = nb::cast<const GlobalArray&>(array);
  CollectiveRequest request =
      disk.write(global, section(from_begin, from_end, order), {extents(begin), extents(end)});
  return std::make_unique<HeldTransfer>(std::move(request), nb::borrow(self), nb::borrow(array),
                                        StridedArg());
}

std::unique_ptr<HeldTransfer> read_section(nb::handle self, nb::handle array, const Numbers& to_begin,
                                           const Numbers& to_end,
                                           const std::optional<std::vector<int>>& order, const Numbers& begin,
                                           const Numbers& end) {
  auto& disk = nb::cast<DiskArray&>(self);
  auto& global = nb::cast<GlobalArray&>(array);
  CollectiveRequest request =
      disk.read(global, section(to_begin, to_end, order), {extents(begin), extents(end)});
  return std::make_unique<HeldTransfer>(std::move(request), nb::borrow(self), nb::borrow(array),
                                        StridedArg());
}

/// `memory` has the shape of the box.
template <Access access>
std::unique_ptr<HeldTransfer> move_block(nb::handle self, nb::handle memory, const Numbers& begin,
                                         const Numbers& end) {
  auto& disk = nb::cast<DiskArray&>(self);
  const Box box{extents(begin), extents(end)};
  StridedArg argument(memory, access, box.shape(), size_bytes(disk.type()));
  CollectiveRequest request =
      access == Access::read ? disk.write(argument.strided(), box) : disk.read(argument.strided(), box);
  return std::make_unique<HeldTransfer>(std::move(request), nb::borrow(self), nb::object(),
                                        std::move(argument));
}

std::unique_ptr<HeldTransfer> refuse(nb::handle self, int errno_value, const std::string& attempted,
                                     const std::string& detail) {
  CollectiveRequest request =
      nb::cast<DiskArray&>(self).refuse(Error(errno_value, {.attempted = attempted, .detail = detail}));
  return std::make_unique<HeldTransfer>(std::move(request), nb::borrow(self), nb::object(), StridedArg());
}

Placement placement(const std::string& name) {
  if (name == "auto") return Placement::automatic;
  if (name == "shared") return Placement::shared;
  if (name == "local") return Placement::local;
  throw Error(EINVAL, {.attempted = "placement '" + name + "'", .detail = "it is auto, shared or local"});
}

store::CodecOptions codec(const std::string& name, std::size_t element_bytes) {
  if (name == "none") return {};
  if (name == "blosc2" || name == "blosc2-zstd") return store::blosc2_for(element_bytes);
  if (name == "blosc2-lz4") return store::blosc2_for(element_bytes, store::Compressor::lz4);
  throw Error(EINVAL, {.attempted = "codec '" + name + "'",
                       .detail = "it is none, blosc2 (the same as blosc2-zstd) or blosc2-lz4"});
}

void make(DiskArray* self, World& world, const Numbers& shape, const std::string& type_name,
          const std::string& path, const Numbers& chunk, const Numbers& typical,
          const std::string& codec_name, const std::string& placement_name, bool overwrite,
          std::int64_t expected_bytes, const std::string& metadata, const std::string& refusal) {
  const nb::gil_scoped_release released;
  new (self) DiskArray(world, [&](Extents& wanted_shape, ElementType& type, DiskArrayOptions& options) {
    if (!refusal.empty()) throw Error(EINVAL, {.attempted = "create disk array", .detail = refusal});
    wanted_shape = extents(shape);
    type = element_type(type_name);
    options = {.path = path,
               .overwrite = overwrite,
               .placement = placement(placement_name),
               .chunk = extents(chunk),
               .typical = extents(typical),
               .codec = codec(codec_name, size_bytes(type)),
               .expected_bytes = expected_bytes,
               .metadata = metadata};
  });
}

}  // namespace

void bind_disk_array(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<HeldTransfer>(module, "CollectiveTransfer",
                           "A collective transfer of a disk array under way. It keeps its memory alive.")
      .def("wait", &HeldTransfer::wait,
           "Block until every process has done its part. Raises OutcoreError, at all processes the same, if "
           "it\n"
           "failed at any. Not collective. Other Python threads run meanwhile.")
      .def("test", &HeldTransfer::test, "True once complete; never blocks. Raises OutcoreError if it failed.")
      .def_prop_ro("done", &HeldTransfer::done, "True once complete or failed; never raises.");
  nb::class_<DiskArray>(module, "DiskArray", nb::is_weak_referenceable(),
                        "Native part of outcore.DiskArray, which checks arguments.")
      .def("__init__", &make, nb::keep_alive<1, 2>(), "world"_a, "shape"_a, "dtype"_a, "path"_a, "chunk"_a,
           "typical"_a, "codec"_a, "placement"_a, "overwrite"_a, "expected_bytes"_a, "metadata"_a,
           "refusal"_a)
      .def_static(
          "open",
          [](World& world, const std::string& path, bool read_only) {
            const nb::gil_scoped_release released;
            return std::make_unique<DiskArray>(DiskArray::open(world, path, read_only));
          },
          nb::keep_alive<0, 1>(), "world"_a, "path"_a, "read_only"_a)
      .def("write_section", &write_section, "array"_a, "from_begin"_a, "from_end"_a, "order"_a.none(),
           "begin"_a, "end"_a)
      .def("read_section", &read_section, "array"_a, "to_begin"_a, "to_end"_a, "order"_a.none(), "begin"_a,
           "end"_a)
      .def("write_block", &move_block<Access::read>, "memory"_a, "begin"_a, "end"_a)
      .def("read_block", &move_block<Access::write>, "memory"_a, "begin"_a, "end"_a)
      .def("refuse", &refuse, "errno"_a, "attempted"_a, "detail"_a,
           "Take part in a transfer that this process cannot make: all get the error.")
      .def(
          "flush",
          [](DiskArray& self, const std::optional<std::string>& metadata) {
            const nb::gil_scoped_release released;
            metadata ? self.flush(*metadata) : self.flush();
          },
          "metadata"_a = nb::none())
      .def("close", &DiskArray::close, unlocked)
      .def("drop", &DiskArray::drop, unlocked)
      .def("remove", &DiskArray::remove, unlocked)
      .def("stored_bytes", &DiskArray::stored_bytes, unlocked)
      .def_prop_ro("shape", [](const DiskArray& self) { return numbers(self.shape()); })
      .def_prop_ro("chunk", [](const DiskArray& self) { return numbers(self.chunk()); })
      .def_prop_ro("dtype", [](const DiskArray& self) { return std::string(name(self.type())); })
      .def_prop_ro("codec", [](const DiskArray& self) { return store::text(self.codec()); })
      .def_prop_ro("components", &DiskArray::components)
      .def_prop_ro(
          "placement",
          [](const DiskArray& self) { return self.placement() == Placement::shared ? "shared" : "local"; })
      .def_prop_ro("path", [](const DiskArray& self) { return self.path(); })
      .def_prop_ro("metadata", [](const DiskArray& self) { return self.metadata(); })
      .def_prop_ro("read_only", &DiskArray::read_only)
      .def_prop_ro("closed", &DiskArray::closed);
  module.def(
      "array_facts",
      [](const std::string& path) {
        const ArrayFacts facts = array_facts(path);
        nb::dict dict;
        for (const auto& [name, value] : facts.lines) dict[name.c_str()] = value;
        dict["metadata"] = facts.metadata;
        return dict;
      },
      "path"_a, nb::sig("def array_facts(path: str) -> dict[str, str]"),
      "What the manifest of a persistent array says. Raises OutcoreError if it is none, or damaged.");
  module.def(
      "verify_array",
      [](const std::string& path) {
        const nb::gil_scoped_release released;
        return verify_array(path).damage;
      },
      "path"_a,
      "Read all of a persistent array and check every checksum; what is damaged, one line for each.");
}

}  // namespace outcore::python
