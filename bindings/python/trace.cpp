// The trace in Python: plain dictionaries and bytes, which outcore.trace turns into tables and arrays.
#include "outcore/trace.hpp"

#include <nanobind/stl/array.h>

#include <cstddef>
#include <stdexcept>

#include "bindings.hpp"
#include "device/space_in_use.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

using trace::Event;
using trace::Layer;
using trace::Op;

template <class Enum>
Enum parse(const std::string& text) {
  for (int i = 0; i < int(Enum::count); ++i)
    if (text == trace::name(Enum(i))) return Enum(i);
  throw std::invalid_argument("unknown name in the trace: '" + text + "'");
}

using Names = nb::typed<nb::tuple, nb::str, nb::ellipsis>;
using Numbers = nb::typed<nb::tuple, nb::int_, nb::ellipsis>;
using Dict = nb::typed<nb::dict, nb::str, nb::any>;

template <class Enum>
Names names() {
  nb::list list;
  for (int i = 0; i < int(Enum::count); ++i) list.append(trace::name(Enum(i)));
  return Names(nb::tuple(list));
}

nb::dict to_dict(const trace::Counter& counter) {
  nb::dict result;
  result["count"] = counter.count;
  result["failed"] = counter.failed;
  result["nanoseconds"] = counter.nanoseconds;
  result["waited_ns"] = counter.waited_ns;
  result["bytes"] = counter.bytes;
  result["sequential"] = counter.sequential;
  result["by_size"] = nb::cast(counter.by_size);
  result["bytes_by_size"] = nb::cast(counter.bytes_by_size);
  return result;
}

Dict snapshot() {
  const trace::Snapshot taken = trace::snapshot();
  nb::dict result;
  result["device_read_busy_ns"] = taken.device_read_busy_ns;
  result["device_write_busy_ns"] = taken.device_write_busy_ns;
  result["taken_ns"] = taken.taken_ns;
  result["process_start_ns"] = taken.process_start_ns;
  nb::dict layers;
  for (std::size_t layer = 0; layer < taken.counters.size(); ++layer) {
    nb::dict ops;
    for (std::size_t op = 0; op < taken.counters[layer].size(); ++op)
      ops[trace::name(Op(op))] = to_dict(taken.counters[layer][op]);
    layers[trace::name(Layer(layer))] = ops;
  }
  result["layers"] = layers;
  return Dict(result);
}

nb::any event_fields() {
  nb::list fields, formats, offsets;
  const auto add = [&](const char* field, const char* format, std::size_t offset) {
    fields.append(field);
    formats.append(format);
    offsets.append(offset);
  };
  add("start_ns", "u8", offsetof(Event, start_ns));
  add("end_ns", "u8", offsetof(Event, end_ns));
  add("waited_ns", "u8", offsetof(Event, waited_ns));
  add("offset", "i8", offsetof(Event, offset));
  add("bytes", "i8", offsetof(Event, bytes));
  add("file", "u4", offsetof(Event, file));
  add("thread", "u4", offsetof(Event, thread));
  add("op", "u1", offsetof(Event, op));
  add("layer", "u1", offsetof(Event, layer));
  add("failed", "?", offsetof(Event, failed));
  add("sequential", "?", offsetof(Event, sequential));
  nb::dict result;
  result["names"] = fields;
  result["formats"] = formats;
  result["offsets"] = offsets;
  result["itemsize"] = sizeof(Event);
  return nb::borrow<nb::any>(result);
}

nb::bytes events() {
  const std::vector<Event> list = trace::events();
  return nb::bytes(list.data(), list.size() * sizeof(Event));
}

void record(const std::string& layer, const std::string& op, std::uint64_t start_ns, std::uint64_t end_ns,
            const std::string& path, std::int64_t offset, std::int64_t bytes, std::uint64_t waited_ns,
            bool failed, bool sequential) {
  trace::record({.start_ns = start_ns,
                 .end_ns = end_ns,
                 .waited_ns = waited_ns,
                 .offset = offset,
                 .bytes = bytes,
                 .file = trace::file_id(path),
                 .op = parse<Op>(op),
                 .layer = parse<Layer>(layer),
                 .failed = failed,
                 .sequential = sequential});
}

}  // namespace

void bind_trace(nb::module_& module) {
  module.def("trace_layers", &names<Layer>);
  module.def("trace_ops", &names<Op>);
  module.def("trace_size_class_bounds",
             [] { return Numbers(nb::tuple(nb::cast(trace::size_class_bounds))); });
  module.def("trace_event_fields", &event_fields, "The argument of numpy.dtype() for an array of events.");
  module.def("trace_now_ns", &trace::now_ns);
  module.def("trace_snapshot", &snapshot,
             "Counters as {'layers': {layer: {operation: {counter: number}}}, ...}.");
  module.def(
      "trace_reset",
      [] {
        trace::reset_counters();
        device::SpaceInUse::forget_peak();
      },
      "Reset the counters and the peak of disk space.");
  module.def(
      "peak_disk_bytes", &device::SpaceInUse::peak_bytes,
      "The most disk space (bytes) that files of this process open for writing took at the same time,\n"
      "since trace_reset.");
  module.def("trace_enable_events", &trace::enable_events, "capacity"_a);
  module.def("trace_disable_events", &trace::disable_events);
  module.def("trace_events", &events, "Recorded events; the layout is trace_event_fields.");
  module.def("trace_dropped_events", &trace::dropped_events);
  module.def(
      "trace_file_name",
      [](std::uint32_t file) {
        const std::string name = trace::file_name(file);
        return nb::steal<nb::str>(PyUnicode_DecodeFSDefaultAndSize(name.data(), Py_ssize_t(name.size())));
      },
      "file"_a);
  module.def("trace_record", &record, "layer"_a, "op"_a, "start_ns"_a, "end_ns"_a, "path"_a = "",
             "offset"_a = 0, "bytes"_a = 0, "waited_ns"_a = 0, "failed"_a = false, "sequential"_a = false);
  module.def(
      "trace_add_waited",
      [](const std::string& layer, const std::string& op, std::uint64_t nanoseconds) {
        trace::add_waited(parse<Layer>(layer), parse<Op>(op), nanoseconds);
      },
      "layer"_a, "op"_a, "nanoseconds"_a);
}

}  // namespace outcore::python
