// The device layer in Python: files with reads and writes at an offset, and file systems under paths.

#include <filesystem>
#include <string>

#include "bindings.hpp"
#include "cache_arg.hpp"
#include "device/file.hpp"
#include "outcore/extend/engine.hpp"
#include "request.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using device::File;
using device::FileSystem;

constexpr auto request_doc =
    "Start a read or write at a byte offset and return its Request at once; the I/O goes on by itself.";

File open_file(const nb::object& path, bool create, bool truncate, bool read_only, const std::string& cache,
               std::int64_t expected_bytes) {
  const nb::object text = nb::module_::import_("os").attr("fspath")(path);
  return File(nb::cast<std::string>(text), {.create = create,
                                            .truncate = truncate,
                                            .read_only = read_only,
                                            .page_cache = parse_cache(cache),
                                            .expected_bytes = expected_bytes});
}

std::vector<iovec> entries(const std::vector<BufferArg>& buffers) {
  std::vector<iovec> list;
  for (const BufferArg& buffer : buffers) list.push_back({buffer.span().data(), buffer.span().size()});
  return list;
}

std::int64_t read(File& file, nb::handle argument, std::int64_t offset) {
  const auto buffers = buffer_list(argument, Access::write);
  const auto list = entries(buffers);
  nb::gil_scoped_release released;
  return file.read(list, offset);
}

std::int64_t write(File& file, nb::handle argument, std::int64_t offset) {
  const auto buffers = buffer_list(argument, Access::read);
  const auto list = entries(buffers);
  nb::gil_scoped_release released;
  return file.write(list, offset);
}

HeldRequest read_async(File& file, nb::handle argument, std::int64_t offset) {
  Uses uses{.buffers = buffer_list(argument, Access::write)};
  Request request = file.read_async(entries(uses.buffers), offset);
  return {std::move(request), std::move(uses), Result::bytes};
}

HeldRequest write_async(File& file, nb::handle argument, std::int64_t offset) {
  Uses uses{.buffers = buffer_list(argument, Access::read)};
  Request request = file.write_async(entries(uses.buffers), offset);
  return {std::move(request), std::move(uses), Result::bytes};
}

void bind_file_class(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<File>(
      module, "File",
      "A file with reads and writes at a byte offset, blocking and not.\n\n"
      "Buffers are C-contiguous objects with the buffer protocol (NumPy arrays, bytearray, ...), or a\n"
      "list of them for one request over several buffers. Errors are OutcoreError.")
      .def(
          "__init__",
          [](File* self, const nb::object& path, bool create, bool truncate, bool read_only,
             const std::string& cache, std::int64_t expected_bytes) {
            new (self) File(open_file(path, create, truncate, read_only, cache, expected_bytes));
          },
          "path"_a, nb::kw_only(), "create"_a = true, "truncate"_a = false, "read_only"_a = false,
          "page_cache"_a = "auto", "expected_bytes"_a = 0)
      .def(
          "read", &read, "buffer"_a, "offset"_a,
          "Fill the buffer from a byte offset; returns the bytes read, fewer than asked for only at the end.")
      .def("write", &write, "buffer"_a, "offset"_a,
           "Write the whole buffer at a byte offset; returns its bytes.")
      .def("read_async", &read_async, "buffer"_a, "offset"_a, request_doc)
      .def("write_async", &write_async, "buffer"_a, "offset"_a, request_doc)
      .def("preallocate", &File::preallocate, unlocked, "size_bytes"_a,
           "Reserve space; the length becomes at least size_bytes.")
      .def("truncate", &File::truncate, unlocked, "length_bytes"_a)
      .def("length", &File::length, "Length in bytes.")
      .def("eof", &File::eof, "offset"_a, "True if offset is at or beyond the end.")
      .def("flush", &File::flush, unlocked,
           "Wait for all writes and put them on stable storage. Raises the error of a failed write that "
           "nobody "
           "waited for.")
      .def("close", &File::close, unlocked, "Wait for everything under way and close; may be repeated.")
      .def_prop_ro("path", &File::path)
      .def_prop_ro("direct_available", &File::direct_available, "The file system accepts direct I/O.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> File"))
      .def(
          "__exit__", [](File& self, nb::handle, nb::handle, nb::handle) { self.close(); }, unlocked,
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
  module.def(
      "remove_file",
      [](const nb::object& path) {
        device::remove_file(nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path)));
      },
      "path"_a, "Remove a file; OutcoreError with ENOENT if there is none.");
}

void bind_file_system(nb::module_& module) {
  nb::class_<FileSystem>(module, "FileSystem", "What is under a path.")
      .def_ro("type", &FileSystem::type, "\"ext4\", \"xfs\", \"tmpfs\", \"nfs\", ... or \"0x...\" if unknown")
      .def_ro("total_bytes", &FileSystem::total_bytes)
      .def_ro("free_bytes", &FileSystem::free_bytes, "Available to this user.")
      .def_ro("network", &FileSystem::network, "Shared by several machines.")
      .def_ro("memory", &FileSystem::memory, "Lives in RAM.")
      .def_ro("direct_memory_align", &FileSystem::direct_memory_align, "In bytes; 0: no direct I/O here.")
      .def_ro("direct_offset_align", &FileSystem::direct_offset_align, "In bytes; 0: no direct I/O here.");
  module.def(
      "file_system",
      [](const nb::object& path) {
        return device::file_system(nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path)));
      },
      "path"_a, "The file system under a path: that of the path itself or of its nearest existing parent.");
}

}  // namespace

void bind_device(nb::module_& module) {
  bind_file_class(module);
  bind_file_system(module);
  module.def("engine_name", [] { return device::default_engine().name(); }, "\"uring\" or \"threads\".");
  module.def("emulation", &device::emulation,
             "What the engine emulates (OUTCORE_THROTTLE, OUTCORE_REQUESTS); empty: nothing.");
  module.def("engine_reason", &device::default_engine_reason, "Why this engine was chosen.");
}

}  // namespace outcore::python
