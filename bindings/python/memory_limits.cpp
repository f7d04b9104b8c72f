// What limits the memory of this process, in Python.
#include "base/memory_limits.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/vector.h>

#include "base/control_groups.hpp"
#include "bindings.hpp"
#include "device/buffer.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {

void bind_memory_limits(nb::module_& module) {
  nb::class_<MemoryLimit>(module, "MemoryLimit", "One limit of the memory of this process, in bytes.")
      .def_ro("name", &MemoryLimit::name)
      .def_ro("source", &MemoryLimit::source, "The file or the variable that says so.")
      .def_ro("limit_bytes", &MemoryLimit::limit_bytes)
      .def_ro("left_bytes", &MemoryLimit::left_bytes, "What can still be taken.")
      .def_ro("shared", &MemoryLimit::shared, "By all processes of the node; else each has one of its own.")
      .def_ro("hard", &MemoryLimit::hard, "Who goes over it fails or is ended.");
  module.def(
      "memory_limits", &memory_limits, "root"_a = "/",
      "All limits that there are, at least that of the machine. Tests have files of their own under `root`.");
  module.def(
      "control_groups",
      [](const std::string& controller, const std::filesystem::path& root) {
        std::vector<std::filesystem::path> found;
        for (const ControlGroup& group : control_groups(controller, root)) found.push_back(group.directory);
        return found;
      },
      "controller"_a, "root"_a = "/",
      "Directories of the control groups of this process that a controller may limit, innermost first.");
  module.def("trim_buffers", &device::trim_pool,
             "Gives memory of transfers to and from disk that is kept for the next ones back to the system.");
}

}  // namespace outcore::python
