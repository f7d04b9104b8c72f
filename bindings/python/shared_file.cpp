// The native part of outcore.files.shared_file: shared files and record files in Python.
#include "outcore/shared_file.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "cache_arg.hpp"
#include "dio/stripes/striped_file.hpp"
#include "gate.hpp"
#include "outcore/error.hpp"
#include "outcore/record_file.hpp"
#include "placement_arg.hpp"
#include "request.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using file::RecordFile;
using file::RecordFileOptions;
using file::SharedFile;
using file::SharedFileOptions;

device::PageCache cache_of(const std::string& name) {
  try {
    return parse_cache(name);
  } catch (const std::invalid_argument& error) {
    throw Error(EINVAL, {.attempted = "create shared file", .detail = error.what()});
  }
}

// ---- shared files

void make_shared_options(SharedFileOptions* self, std::int64_t hard_limit, std::int64_t soft_limit,
                         bool reserve, std::int64_t typical_request, const std::string& placement,
                         int components_per_node, const std::string& cache, std::int64_t client_cache) {
  new (self) SharedFileOptions{.hard_limit_bytes = hard_limit,
                               .soft_limit_bytes = soft_limit,
                               .reserve = reserve,
                               .typical_request_bytes = typical_request,
                               .placement = parse_placement(placement),
                               .components_per_node = components_per_node,
                               .page_cache = cache_of(cache),
                               .client_cache_bytes = client_cache};
}

/// Makes a shared file or a record file, with the name and options that the gate passes.
template <class File, class Options>
void make(File* self, World& world, const nb::callable& gate) {
  const nb::gil_scoped_release released;
  new (self) File(world, [&](std::string& name, Options& options) {
    std::tie(name, options) = brought<std::pair<std::string, Options>>(gate);
  });
}

/// Offsets and buffers of a list of pairs; their memory is valid as long as the buffers.
template <class Range>
std::vector<Range> ranges_of(const nb::sequence& pairs, Access access, std::vector<BufferArg>& buffers) {
  std::vector<Range> ranges;
  for (const nb::handle pair : pairs) {
    const auto two = nb::cast<nb::sequence>(pair);
    if (nb::len(two) != 2) throw nb::value_error("expected pairs of an offset and a buffer");
    const auto offset = nb::cast<std::int64_t>(two[0]);
    buffers.emplace_back(nb::object(two[1]), access);
    ranges.push_back({offset, buffers.back().span()});
  }
  return ranges;
}

std::int64_t read(SharedFile& file, nb::handle argument, std::int64_t offset) {
  const BufferArg buffer(argument, Access::write);
  const nb::gil_scoped_release released;
  file.read(buffer.span(), offset);
  return static_cast<std::int64_t>(buffer.span().size());
}

std::int64_t write(SharedFile& file, nb::handle argument, std::int64_t offset) {
  const BufferArg buffer(argument, Access::read);
  const nb::gil_scoped_release released;
  file.write(buffer.span(), offset);
  return static_cast<std::int64_t>(buffer.span().size());
}

HeldRequest read_async(nb::handle self, nb::handle argument, std::int64_t offset) {
  auto& file = nb::cast<SharedFile&>(self);
  BufferArg buffer(argument, Access::write);
  const auto memory = buffer.span();
  return start_held(using_buffer(std::move(buffer), nb::borrow(self)), Result::bytes,
                    [&] { return file.read_async(memory, offset); });
}

HeldRequest write_async(nb::handle self, nb::handle argument, std::int64_t offset) {
  auto& file = nb::cast<SharedFile&>(self);
  BufferArg buffer(argument, Access::read);
  const auto memory = buffer.span();
  return start_held(using_buffer(std::move(buffer), nb::borrow(self)), Result::bytes,
                    [&] { return file.write_async(memory, offset); });
}

HeldRequest readv_async(nb::handle self, const nb::sequence& pairs) {
  auto& file = nb::cast<SharedFile&>(self);
  std::vector<BufferArg> buffers;
  const auto ranges = ranges_of<SharedFile::ReadRange>(pairs, Access::write, buffers);
  return start_held(Uses{.buffers = std::move(buffers), .owner = nb::borrow(self)}, Result::bytes,
                    [&] { return file.read_async(ranges); });
}

HeldRequest writev_async(nb::handle self, const nb::sequence& pairs) {
  auto& file = nb::cast<SharedFile&>(self);
  std::vector<BufferArg> buffers;
  const auto ranges = ranges_of<SharedFile::WriteRange>(pairs, Access::read, buffers);
  return start_held(Uses{.buffers = std::move(buffers), .owner = nb::borrow(self)}, Result::bytes,
                    [&] { return file.write_async(ranges); });
}

void bind_shared(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<SharedFileOptions>(module, "SharedFileOptions", "Options of a new shared file; sizes in bytes.")
      .def("__init__", &make_shared_options, nb::kw_only(), "hard_limit"_a, "soft_limit"_a, "reserve"_a,
           "typical_request"_a, "placement"_a, "components_per_node"_a, "page_cache"_a,
           "client_cache_bytes"_a);
  nb::class_<SharedFile>(module, "SharedFile", "Native part of outcore.SharedFile.")
      .def("__init__", &make<SharedFile, SharedFileOptions>, nb::keep_alive<1, 2>(), "world"_a, "gate"_a)
      .def("read", &read, "buffer"_a, "offset"_a = 0,
           "Fill the buffer from a byte offset; returns its bytes. Beyond the end it is OutcoreError "
           "(EINVAL).")
      .def("write", &write, "buffer"_a, "offset"_a = 0,
           "Write the whole buffer at a byte offset; returns its bytes. Beyond the hard limit it is\n"
           "OutcoreError (EFBIG).")
      .def("read_async", &read_async, "buffer"_a, "offset"_a = 0,
           "Start a read and return its request at once; the I/O goes on by itself.")
      .def("write_async", &write_async, "buffer"_a, "offset"_a = 0,
           "Start a write and return its request at once; the I/O goes on by itself.")
      .def("readv_async", &readv_async, "ranges"_a,
           nb::sig("def readv_async(self, ranges: Sequence[tuple[int, object]]) -> Request"),
           "As read_async, for a list of (offset, buffer). Small ranges that lie close together are read\n"
           "together.")
      .def("writev_async", &writev_async, "ranges"_a,
           nb::sig("def writev_async(self, ranges: Sequence[tuple[int, object]]) -> Request"),
           "As write_async, for a list of (offset, buffer), which must not overlap.")
      .def("length", &SharedFile::length, unlocked,
           "The end of the file: the highest byte that any process has begun to write. Not collective.")
      .def("sync", &SharedFile::sync, unlocked,
           "Make everything that this process has written visible to all. Raises the error of a write that\n"
           "nobody waited for. Not collective.")
      .def("flush", &SharedFile::flush, unlocked,
           "Put everything that any process has written on stable storage. Collective; raises as sync does.")
      .def("close", &SharedFile::close, unlocked,
           "Wait for everything and close; the bytes are gone. Collective; raises as sync does. May be "
           "repeated.")
      .def("destroy", &SharedFile::destroy, unlocked,
           "As close, but without errors of writes, for bytes that are not wanted. Collective.")
      .def_prop_ro("closed", &SharedFile::closed)
      .def_prop_ro("name", &SharedFile::name)
      .def_prop_ro("hard_limit", &SharedFile::hard_limit_bytes, "The hard limit in bytes; 0: none.")
      .def_prop_ro(
          "stripe", [](const SharedFile& self) { return self.stored().stripes().stripe_bytes(); },
          "Consecutive bytes of the file in one component file, before the next component follows.")
      .def_prop_ro(
          "components", [](const SharedFile& self) { return self.stored().stripes().components(); },
          "Number of component files.")
      .def_prop_ro("placement",
                   [](const SharedFile& self) { return placement_name(self.stored().placement()); });
}

// ---- record files

void make_record_options(RecordFileOptions* self, std::int64_t records, std::int64_t hard_limit,
                         std::int64_t soft_limit, std::int64_t typical_record, const std::string& placement,
                         const std::string& cache) {
  new (self) RecordFileOptions{.records = records,
                               .hard_limit_bytes = hard_limit,
                               .soft_limit_bytes = soft_limit,
                               .typical_record_bytes = typical_record,
                               .placement = parse_placement(placement),
                               .page_cache = cache_of(cache)};
}

void put(RecordFile& file, std::int64_t record, nb::handle argument) {
  const BufferArg buffer(argument, Access::read);
  const nb::gil_scoped_release released;
  file.put(record, buffer.span());
}

std::int64_t get_into(RecordFile& file, std::int64_t record, nb::handle argument) {
  const BufferArg buffer(argument, Access::write);
  const nb::gil_scoped_release released;
  return file.get(record, buffer.span());
}

nb::bytes get(RecordFile& file, std::int64_t record) {
  std::vector<std::byte> bytes;
  {
    const nb::gil_scoped_release released;
    bytes = file.get(record);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

HeldRequest put_async(nb::handle self, std::int64_t record, nb::handle argument) {
  auto& file = nb::cast<RecordFile&>(self);
  BufferArg buffer(argument, Access::read);
  const auto memory = buffer.span();
  return start_held(using_buffer(std::move(buffer), nb::borrow(self)), Result::bytes,
                    [&] { return file.put_async(record, memory); });
}

HeldRequest get_into_async(nb::handle self, std::int64_t record, nb::handle argument) {
  auto& file = nb::cast<RecordFile&>(self);
  BufferArg buffer(argument, Access::write);
  const auto memory = buffer.span();
  return start_held(using_buffer(std::move(buffer), nb::borrow(self)), Result::bytes,
                    [&] { return file.get_async(record, memory); });
}

void bind_records(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<RecordFileOptions>(module, "RecordFileOptions", "Options of a new record file; sizes in bytes.")
      .def("__init__", &make_record_options, nb::kw_only(), "records"_a, "hard_limit"_a, "soft_limit"_a,
           "typical_record"_a, "placement"_a, "page_cache"_a);
  nb::class_<RecordFile>(module, "RecordFile", "Native part of outcore.RecordFile.")
      .def("__init__", &make<RecordFile, RecordFileOptions>, nb::keep_alive<1, 2>(), "world"_a, "gate"_a)
      .def("put", &put, "record"_a, "buffer"_a, "Write a record; its size may change.")
      .def("get", &get, "record"_a,
           "The bytes of a record. OutcoreError (ENOENT) if there is no such record.")
      .def("get_into", &get_into, "record"_a, "buffer"_a,
           "Read a record into a buffer that is long enough, else OutcoreError (EMSGSIZE); returns the size\n"
           "of the record. The rest of the buffer may be changed.")
      .def("put_async", &put_async, "record"_a, "buffer"_a, "Start a put and return its request at once.")
      .def("get_into_async", &get_into_async, "record"_a, "buffer"_a,
           "Start get_into and return its request at once; wait() returns the bytes of the record.")
      .def("size", &RecordFile::size, unlocked, "record"_a, "Bytes of a record; None if there is none.")
      .def("capacity", &RecordFile::capacity, unlocked, "record"_a,
           "A length of a buffer that is enough for get_into: the size of the record, and up to a ninth and\n"
           "64 bytes more. Reads nothing from the disk. None if there is no such record.")
      .def("erase", &RecordFile::erase, unlocked, "record"_a, "Remove a record, if it exists.")
      .def("sync", &RecordFile::sync, unlocked,
           "Complete all puts of this process and make them visible to all. Raises the error of a put that\n"
           "nobody waited for. Not collective.")
      .def("flush", &RecordFile::flush, unlocked,
           "Put all records on stable storage. Collective; raises as sync does.")
      .def("close", &RecordFile::close, unlocked,
           "Wait for everything and close; the records are gone. Collective; raises as sync does. May be "
           "repeated.")
      .def_prop_ro("closed", &RecordFile::closed)
      .def_prop_ro("name", &RecordFile::name)
      .def_prop_ro(
          "taken_bytes", &RecordFile::taken_bytes, unlocked,
          "Bytes of the file that all processes together have taken, with the space of old versions.")
      .def("__len__", &RecordFile::records);
}

}  // namespace

void bind_shared_file(nb::module_& module) {
  bind_shared(module);
  bind_records(module);
}

}  // namespace outcore::python
