// The limits of the memory of this process, in Python.
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
      .def_ro("left_bytes", &MemoryLimit::left_bytes, "Bytes that can still be taken.")
      .def_ro("shared", &MemoryLimit::shared,
              "Whether all processes of the node share the limit; else each has its own.")
      .def_ro("hard", &MemoryLimit::hard, "Whether a process that exceeds it fails or is killed.");
  module.def("memory_limits", &memory_limits, "root"_a = "/",
             "All limits, at least that of the machine. Tests use their own files under `root`.");
  module.def(
      "control_groups",
      [](const std::string& controller, const std::filesystem::path& root) {
        std::vector<std::filesystem::path> found;
        for (const ControlGroup& group : control_groups(controller, root)) found.push_back(group.directory);
        return found;
      },
      "controller"_a, "root"_a = "/",
      "Directories of the control groups that may limit this process by a controller, innermost first.");
  module.def("trim_buffers", &device::trim_pool,
             "Give memory that is kept for further transfers to and from disk back to the system.");
}

}  // namespace outcore::python
