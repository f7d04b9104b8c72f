// Packed records of numbers that all processes share, in Python.
#include "file/record_store.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "line.hpp"
#include "placement_arg.hpp"
#include "store/block_float.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using file::RecordStore;
using file::RecordStoreCounts;
using file::RecordTraffic;

void make(RecordStore* self, World& world, const std::string& name, const Line<const std::int64_t>& sizes,
          std::int64_t memory_bytes, std::int64_t reserve_bytes, const std::string& placement) {
  const nb::gil_scoped_release released;
  new (self) RecordStore(world, name,
                         {.sizes = {sizes.data(), sizes.data() + sizes.size()},
                          .memory_bytes = memory_bytes,
                          .reserve_bytes = reserve_bytes,
                          .placement = parse_placement(placement)});
}

}  // namespace

void bind_record_store(nb::module_& module) {
  nb::class_<RecordTraffic>(module, "RecordTraffic", "Records that were moved.")
      .def_ro("count", &RecordTraffic::count)
      .def_ro("bytes", &RecordTraffic::bytes, "Packed.")
      .def_ro("least", &RecordTraffic::least, "Bytes of the smallest record; 0 if there was none.")
      .def_ro("most", &RecordTraffic::most, "Bytes of the largest record.");
  nb::class_<RecordStoreCounts>(
      module, "RecordStoreCounts",
      "Counts of the records that one process moved; reads and writes include those of the file.")
      .def_ro("reads", &RecordStoreCounts::reads)
      .def_ro("writes", &RecordStoreCounts::writes)
      .def_ro("file_reads", &RecordStoreCounts::file_reads)
      .def_ro("file_writes", &RecordStoreCounts::file_writes);
  nb::class_<RecordStore> store(
      module, "RecordStore",
      "Records of numbers that all processes read, write and add to: packed with a bounded error, in memory "
      "that they\n"
      "share while there is room, else in a file. Any thread; see file/record_store.hpp.");
  store.def("__init__", &make, nb::keep_alive<1, 2>(), "world"_a, "name"_a, "sizes"_a, nb::kw_only(),
            "memory_bytes"_a, "reserve_bytes"_a = 0, "placement"_a = "auto",
            "Collective. sizes: how many numbers each record has. memory_bytes: memory of each process for\n"
            "packed records. reserve_bytes: part of the memory of all processes that idle records leave to\n"
            "the others. placement: of the file.");
  store.def(
      "get",
      [](RecordStore& self, const Line<const std::int64_t>& records, const Line<double>& numbers) {
        nb::gil_scoped_release release;
        self.get({records.data(), records.size()}, {numbers.data(), numbers.size()});
      },
      "records"_a, "numbers"_a.noconvert(),
      "Read records, which are in ascending order, one after another into memory.");
  store.def(
      "put",
      [](RecordStore& self, const Line<const std::int64_t>& records, double error,
         const Line<const double>& numbers, bool idle) {
        nb::gil_scoped_release release;
        self.put({records.data(), records.size()}, error, {numbers.data(), numbers.size()}, idle);
      },
      "records"_a, "error"_a, "numbers"_a, "idle"_a = false,
      "Write records, each number with at most this error; 0: exactly. idle: other records have memory\n"
      "first.");
  store.def(
      "add",
      [](RecordStore& self, const Line<const std::int64_t>& records, double error,
         const Line<const double>& numbers) {
        nb::gil_scoped_release release;
        self.add({records.data(), records.size()}, error, {numbers.data(), numbers.size()});
      },
      "records"_a, "error"_a, "numbers"_a,
      "Add to records, to each atomically; sums are stored with at most this error.");
  store
      .def(
          "erase",
          [](RecordStore& self, const Line<const std::int64_t>& records) {
            nb::gil_scoped_release release;
            self.erase({records.data(), records.size()});
          },
          "records"_a, "Set records to zero.")
      .def("set_reserve", &RecordStore::set_reserve, "bytes"_a,
           "Set the bytes of memory that idle records leave to others from now on.")
      .def("close", &RecordStore::close, nb::call_guard<nb::gil_scoped_release>(),
           "Close the store; its records are gone. Collective; may be repeated.")
      .def_prop_ro("counts", &RecordStore::counts)
      .def(
          "place",
          [](const RecordStore& self, const Line<const std::int64_t>& records) {
            std::vector<std::int64_t> found;
            for (std::size_t i = 0; i < records.size(); ++i) {
              const auto place = self.place(records.data()[i]);
              found.push_back(place.in_memory ? place.bytes : -place.bytes);
            }
            return new_line(found);
          },
          "records"_a, nb::rv_policy::move,
          "Packed bytes of each record: positive in memory, negative in the file, 0 if it was never\n"
          "written.");
  module.def(
      "pack_numbers",
      [](const Line<const double>& numbers, double error) {
        std::vector<std::byte> packed(store::max_packed_bytes(numbers.size()));
        const auto bytes = store::pack({numbers.data(), numbers.size()}, error, packed.data());
        return nb::bytes(packed.data(), bytes);
      },
      "numbers"_a, "error"_a, "Pack numbers, each with at most this error; 0: exactly.");
  module.def(
      "unpack_numbers",
      [](const nb::bytes& packed, double error, const Line<double>& numbers) {
        store::unpack({static_cast<const std::byte*>(packed.data()), packed.size()}, error,
                      {numbers.data(), numbers.size()});
      },
      "packed"_a, "error"_a, "numbers"_a.noconvert(),
      "Unpack numbers. OutcoreError (EIO) for bytes that pack_numbers never made.");
}

}  // namespace outcore::python
