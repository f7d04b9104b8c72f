// Exclusive access files and scratch directories in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>

#include "bindings.hpp"
#include "cache_arg.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/scratch.hpp"
#include "request.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using file::ExclusiveFile;

constexpr auto class_doc =
    "A byte-addressable scratch file of this process (exclusive access file, EAF).\n\n"
    "The name is private to the process: two processes that open \"ints\" have two files. The file\n"
    "vanishes with the process, also when that is killed, unless `keep`: then it is `scratch`/`name`\n"
    "and stays. A name opened again in the same process, also after close, finds its bytes; `delete`\n"
    "drops them.\n\n"
    "Offsets and sizes are bytes. Buffers are C-contiguous objects with the buffer protocol (NumPy\n"
    "arrays, bytearray, memoryview, ...), whose elements are no Python objects. Small sequential\n"
    "requests are combined: written behind and read ahead. Threads may share a file.\n\n"
    "Args:\n"
    "    name: not empty, without '/'.\n"
    "    scratch: directory; None: outcore.default_scratch().\n"
    "    keep: the file outlives the process.\n"
    "    page_cache: 'auto', 'buffered' (always through the page cache) or 'direct' (past it).\n"
    "    expected_bytes: expected size, 0 if unknown. More than is free is ENOSPC at once.\n\n"
    "Raises:\n"
    "    OutcoreError: an OSError; EINVAL (name, negative offset), EBADF (closed), ENOENT, EACCES, EROFS\n"
    "        (scratch), ENOSPC, EIO. A write may be kept in memory and fail later: then the next write, "
    "flush\n"
    "        or close raises.\n"
    "    ValueError: a buffer that is read-only (where it is read into) or not C-contiguous.\n"
    "    TypeError: no buffer, or one of Python objects.\n\n"
    "Source: the Exclusive Access Files of ChemIO (Nieplocha, Foster, Kendall 1998).";

std::string path_text(nb::handle path) {
  return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path));
}

std::int64_t read(ExclusiveFile& file, nb::handle argument, std::int64_t offset) {
  const BufferArg buffer(argument, Access::write);
  nb::gil_scoped_release released;
  return file.read(buffer.span(), offset);
}

std::int64_t write(ExclusiveFile& file, nb::handle argument, std::int64_t offset) {
  const BufferArg buffer(argument, Access::read);
  nb::gil_scoped_release released;
  return file.write(buffer.span(), offset);
}

HeldRequest read_async(ExclusiveFile& file, nb::handle argument, std::int64_t offset) {
  BufferArg buffer(argument, Access::write);
  const auto memory = buffer.span();
  return start_held(using_buffer(std::move(buffer)), Result::bytes,
                    [&] { return file.read_async(memory, offset); });
}

HeldRequest write_async(ExclusiveFile& file, nb::handle argument, std::int64_t offset) {
  BufferArg buffer(argument, Access::read);
  const auto memory = buffer.span();
  return start_held(using_buffer(std::move(buffer)), Result::bytes,
                    [&] { return file.write_async(memory, offset); });
}

void open(ExclusiveFile* self, const std::string& name, const nb::object& scratch, bool keep,
          const std::string& cache, std::int64_t expected_bytes) {
  const file::ExclusiveFileOptions options{.scratch = scratch.is_none() ? "" : path_text(scratch),
                                           .keep = keep,
                                           .page_cache = parse_cache(cache),
                                           .expected_bytes = expected_bytes};
  nb::gil_scoped_release released;
  new (self) ExclusiveFile(name, options);
}

void bind_exclusive_file(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<ExclusiveFile>(module, "ExclusiveFile", class_doc)
      .def("__init__", &open, "name"_a, nb::kw_only(), "scratch"_a = nb::none(), "keep"_a = false,
           "page_cache"_a = "auto", "expected_bytes"_a = 0)
      .def("read", &read, "buffer"_a, "offset"_a = 0,
           "Fill the buffer from a byte offset; returns the bytes read, fewer only at the end of the file.")
      .def("write", &write, "buffer"_a, "offset"_a = 0,
           "Write the whole buffer at a byte offset; returns its bytes.")
      .def("read_async", &read_async, "buffer"_a, "offset"_a = 0,
           "Start a read and return its Request at once; the I/O goes on by itself.")
      .def("write_async", &write_async, "buffer"_a, "offset"_a = 0,
           "Start a write and return its Request at once; the I/O goes on by itself.")
      .def("length", &ExclusiveFile::length, unlocked, "Length in bytes, with everything written so far.")
      .def("eof", &ExclusiveFile::eof, unlocked, "offset"_a, "True if offset is at or beyond the end.")
      .def("truncate", &ExclusiveFile::truncate, unlocked, "length_bytes"_a, "Set the length in bytes.")
      .def("preallocate", &ExclusiveFile::preallocate, unlocked, "size_bytes"_a,
           "Reserve space on the disk; the length becomes at least size_bytes.")
      .def("flush", &ExclusiveFile::flush, unlocked,
           "Put everything on stable storage. Raises the error of a failed write that nobody waited for.")
      .def("close", &ExclusiveFile::close, unlocked,
           "Wait for everything under way and close; may be repeated. The bytes stay for the next opening.")
      .def("delete", &ExclusiveFile::erase, unlocked, "Close the file and drop its bytes.")
      .def_prop_ro("closed", &ExclusiveFile::closed)
      .def_prop_ro("name", &ExclusiveFile::name)
      .def_prop_ro("path", &ExclusiveFile::path,
                   "The path that messages name. On a local disk it is not in the directory, unless kept.")
      .def("__repr__",
           [](const ExclusiveFile& file) {
             return "<outcore.ExclusiveFile '" + file.path() + "'" + (file.closed() ? ", closed>" : ">");
           })
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> ExclusiveFile"))
      .def(
          "__exit__", [](ExclusiveFile& self, nb::handle, nb::handle, nb::handle) { self.close(); }, unlocked,
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
}

}  // namespace

void bind_file(nb::module_& module) {
  bind_exclusive_file(module);
  module.def("default_scratch", &device::default_scratch, nb::call_guard<nb::gil_scoped_release>(),
             "The scratch directory used when none is given: $OUTCORE_SCRATCH, else the fastest writable,\n"
             "node-local, disk-backed one of $SLURM_TMPDIR, $TMPDIR, /scratch/$USER, /local/$USER, /var/tmp\n"
             "and /tmp. OutcoreError (ENOENT) says why each was refused.");
  module.def(
      "clean",
      [](const nb::object& scratch) {
        const auto directory = path_text(scratch);
        nb::gil_scoped_release released;
        return device::clean(directory);
      },
      "scratch"_a,
      "Remove the directories that dead processes of this user on this host left in a scratch\n"
      "directory; returns their paths.");
  module.def(
      "remove_process_directories", &device::remove_process_directories,
      nb::call_guard<nb::gil_scoped_release>(),
      "Remove the directories of this process in scratch with all their contents, because it is ending.");
}

}  // namespace outcore::python
