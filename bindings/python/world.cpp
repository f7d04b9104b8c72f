// World, counter and lock in Python. Everything that may wait releases the GIL.
#include "outcore/world.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "gate.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/extend/transport.hpp"
#include "string_arg.hpp"
#include "transport/death_watch.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

std::vector<std::byte> copy_of(const nb::bytes& data) {
  const auto* first = static_cast<const std::byte*>(data.data());
  return {first, first + data.size()};
}

/// The name of a collective call, and its arguments.
std::uint64_t fingerprint_of(const nb::bytes& arguments) {
  return fingerprint({static_cast<const std::byte*>(arguments.data()), arguments.size()});
}

void make(World* self, std::optional<int> communicator, const nb::callable& gate) {
  const nb::gil_scoped_release released;
  new (self) World(communicator ? transport::mpi(*communicator) : transport::self(),
                   [&] { return brought<WorldOptions>(gate); });
}

struct AwaitedBlock {
  explicit AwaitedBlock(std::string of) : name(std::move(of)) {}
  std::string name;
  std::optional<transport::WatchedCall> watched{};
};

/// Some processes of a world, which will form a world of their own.
struct Group {
  std::unique_ptr<transport::Transport> transport;
};

std::unique_ptr<Group> split(World& world, int color, int key) {
  const nb::gil_scoped_release released;
  auto transport = world.split_transport(color, key);
  DiskArray::prepare(world);  // so that arrays of the groups can be reached from all of it
  return transport ? std::make_unique<Group>(std::move(transport)) : nullptr;
}

void make_of_group(World* self, Group& group, World& whole, const std::string& scratch) {
  const nb::gil_scoped_release released;
  new (self) World(std::move(group.transport), whole, scratch);
}

/// The bytes of every process, of any length each, in order of rank.
nb::list gather(World& world, const nb::callable& gate) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(world.size()));
  std::vector<std::byte> all;
  std::size_t longest = 0;
  {
    const nb::gil_scoped_release released;
    std::vector<std::byte> mine;
    world.enter("gather", [&]() -> std::uint64_t {
      take_brought(gate, [&](const nb::object& value) { mine = copy_of(nb::cast<nb::bytes>(value)); });
      return 0;  // they may differ
    });
    const auto size = static_cast<std::int64_t>(mine.size());
    world.transport().all_gather(std::as_bytes(std::span(&size, 1)),
                                 std::as_writable_bytes(std::span(sizes)));
    longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
    mine.resize(longest);
    all.resize(longest * sizes.size());
    world.transport().all_gather(mine, all);
  }
  nb::list result;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    result.append(nb::bytes(all.data() + i * longest, static_cast<std::size_t>(sizes[i])));
  return result;
}

/// The bytes of the root; those of the others do not count.
nb::bytes broadcast(World& world, const nb::callable& gate) {
  std::vector<std::byte> data;
  {
    const nb::gil_scoped_release released;
    int root = 0;
    world.enter("broadcast", [&] {
      take_brought(gate, [&](const nb::object& value) {
        const auto [mine, process] = nb::cast<std::pair<nb::bytes, int>>(value);
        data = copy_of(mine);
        root = process;
      });
      if (root < 0 || root >= world.size())
        throw Error(EINVAL, {.attempted = "broadcast",
                             .detail = "root " + std::to_string(root) + " of " +
                                       std::to_string(world.size()) + " processes"});
      return fingerprint(std::as_bytes(std::span(&root, 1)));
    });
    auto size = static_cast<std::int64_t>(data.size());
    world.transport().broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
    data.resize(static_cast<std::size_t>(size));
    world.transport().broadcast(data, root);
  }
  return nb::bytes(data.data(), data.size());
}

transport::Reduction reduction(const std::string& name) {
  if (name == "sum") return transport::Reduction::sum;
  if (name == "min") return transport::Reduction::min;
  if (name == "max") return transport::Reduction::max;
  throw Error(EINVAL, {.attempted = "all_reduce with op='" + name + "'", .detail = "it is sum, min or max"});
}

template <class Number>
using Array = nb::ndarray<Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Reduces the array that the gate passes, in place, and returns it.
nb::object all_reduce(World& world, const nb::callable& gate) {
  nb::object array;
  const nb::gil_scoped_release released;
  std::optional<std::span<double>> reals;
  std::span<std::int64_t> integers;
  auto how = transport::Reduction::sum;
  world.enter("all_reduce", [&] {
    std::uint64_t print = 0;
    take_brought(gate, [&](const nb::object& value) {
      const auto three = nb::cast<nb::tuple>(value);
      array = three[0];
      how = reduction(nb::cast<std::string>(three[1]));
      print = fingerprint_of(nb::cast<nb::bytes>(three[2]));
      if (Array<double> given; nb::try_cast(array, given, false)) {
        reals.emplace(given.data(), given.size());
        return;
      }
      const auto given = nb::cast<Array<std::int64_t>>(array, false);
      integers = {given.data(), given.size()};
    });
    return print;
  });
  if (reals)
    world.transport().all_reduce(*reals, how);
  else
    world.transport().all_reduce(integers, how);
  return array;
}

void enter(World& world, const std::string& what, const nb::callable& gate) {
  const nb::gil_scoped_release released;
  world.enter(what, [&] {
    std::uint64_t print = 0;
    take_brought(gate, [&](const nb::object& value) { print = fingerprint_of(nb::cast<nb::bytes>(value)); });
    return print;
  });
}

void leave(World& world, const nb::callable& gate) {
  const nb::gil_scoped_release released;
  std::optional<Error> failure;
  try {
    take_brought(gate, [](const nb::object&) {});
  } catch (const Error& error) {
    failure = error;
  }
  world.leave(failure);
}

void bind_shared_things(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<Counter>(
      module, "Counter",
      "A counter of all processes, for dynamic distribution of tasks; initially zero. Made by\n"
      "World.counter.")
      .def(nb::init<World&>(), nb::keep_alive<1, 2>(), unlocked, "world"_a)
      .def("next", &Counter::next, unlocked, "count"_a = 1,
           "Add `count` and return the value before. Any process and thread, at any time; atomic.")
      .def("reset", &Counter::reset, unlocked, "Set the counter back to zero. Collective.");
  nb::class_<Lock>(
      module, "Lock",
      "A lock between processes, and between threads; first come, first served. Waits asleep. Made by\n"
      "World.lock, used in a `with` block. Its release makes all puts of this process visible to the\n"
      "next holder.")
      .def(nb::init<World&>(), nb::keep_alive<1, 2>(), unlocked, "world"_a)
      .def("acquire", &Lock::lock, unlocked, "Wait until this process (and thread) holds the lock.")
      .def("release", &Lock::unlock, unlocked,
           "Give the lock to the next in line. Raises OutcoreError if this process does not hold it.")
      .def(
          "__enter__",
          [](nb::object self) {
            {
              Lock& lock = nb::cast<Lock&>(self);
              const nb::gil_scoped_release released;
              lock.lock();
            }
            return self;
          },
          nb::sig("def __enter__(self) -> Lock"))
      .def(
          "__exit__",
          [](Lock& self, const nb::args&) {
            const nb::gil_scoped_release released;
            self.unlock();
          },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace

void bind_world(nb::module_& module) {
  const nb::call_guard<nb::gil_scoped_release> unlocked;
  nb::class_<Budget>(module, "Budget", "Memory accounted against a limit, in bytes. Thread-safe.")
      .def_prop_ro("limit_bytes", &Budget::limit_bytes)
      .def_prop_ro("origin", &Budget::origin, "Where the limit comes from; empty if the user has set it.")
      .def_prop_ro("used_bytes", &Budget::used_bytes)
      .def_prop_ro("peak_bytes", &Budget::peak_bytes, "The largest number of bytes that was in use at once.")
      .def(
          "reserve",
          [](Budget& self, std::int64_t size_bytes, const std::string& what) {
            self.reserve(size_bytes, what);
          },
          "size_bytes"_a, "what"_a,
          "Account for memory. Raises OutcoreError (ENOMEM), which has the sizes, if the budget has no\n"
          "room.")
      .def("release", &Budget::release, "size_bytes"_a);
  nb::class_<Group>(module, "Group", "Processes split off from a world. Made by World.split.");
  nb::class_<WorldOptions>(module, "WorldOptions", "Options of a world.")
      .def(
          "__init__",
          [](WorldOptions* self, std::int64_t memory_bytes, const std::string& scratch,
             bool node_for_each_process) {
            new (self) WorldOptions{.memory_bytes = memory_bytes,
                                    .scratch = scratch,
                                    .node_for_each_process = node_for_each_process};
          },
          nb::kw_only(), "memory_bytes"_a, "scratch"_a, "node_for_each_process"_a);
  module.def("watch_in_finalize", &transport::watch_in_finalize,
             "From now on MPI_Finalize ends the job if it waits for a process that has died.");
  nb::class_<AwaitedBlock>(
      module, "AwaitedCall",
      "A `with` block that waits for other processes: ends this process if one of them has died.")
      .def(nb::init<std::string>(), "name"_a)
      .def("__enter__", [](AwaitedBlock& self) { self.watched.emplace(self.name.c_str()); })
      .def(
          "__exit__", [](AwaitedBlock& self, const nb::args&) { self.watched.reset(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  nb::class_<World>(module, "World", nb::is_weak_referenceable(), "Native part of outcore.World.")
      .def("__init__", &make, "communicator"_a.none(), "gate"_a)
      .def("__init__", &make_of_group, "group"_a, "whole"_a, "scratch"_a)
      .def("split_group", &split, "color"_a, "key"_a,
           "The processes of this color as a group; None for a negative color. Collective.")
      .def_prop_ro("rank", &World::rank, "Number of this process, from 0.")
      .def_prop_ro("size", &World::size, "Number of processes.")
      .def_prop_ro("node", &World::node, "Number of the node of this process, from 0.")
      .def_prop_ro("node_count", &World::node_count, "Number of nodes.")
      .def_prop_ro("node_rank", &World::node_rank, "Number of this process on its node.")
      .def_prop_ro("node_size", &World::node_size, "Processes on this node.")
      .def_prop_ro("closed", &World::closed)
      .def_prop_ro("budget", &World::budget, nb::rv_policy::reference_internal,
                   "Budget of memory of this process.")
      .def_prop_ro(
          "scratch", [](const World& self) { return self.scratch(); },
          "Scratch directory of this process; chosen when first asked for, if none was given.")
      .def_prop_ro(
          "description", [](World& self) { return self.transport().description(); },
          "How processes reach one another: 'self', or 'mpi: ' and the library.")
      .def("flush", &World::flush, unlocked,
           "Wait until all one-sided operations of this process have arrived and are visible.")
      .def("barrier", &World::barrier, unlocked, "Flush, then wait, asleep, for all processes. Collective.")
      .def("close", &World::close, unlocked,
           "Free all memory of the world. Collective; may be repeated. Its arrays are lost, and views of\n"
           "their local memory must not be used any more.")
      .def("gather_bytes", &gather, "gate"_a,
           "The bytes of all processes, in order of rank; each passes its own. Collective.")
      .def("broadcast_bytes", &broadcast, "gate"_a,
           "The bytes of the root. The gate passes bytes, which count at the root only, and the rank of the\n"
           "root. Collective.")
      .def("reduce_numbers", &all_reduce, "gate"_a,
           nb::sig("def reduce_numbers(self, gate: Callable) -> numpy.typing.NDArray"),
           "Reduce an array of float64 or int64 in place, and return it. The gate passes the array, the\n"
           "operation, and bytes that must be the same at all processes. Collective.")
      .def("enter", &enter, "what"_a, "gate"_a,
           "Begin a collective step, with bytes that must be the same at all processes: see World.together.")
      .def("leave", &leave, "gate"_a,
           "End a collective step. Raises the error of the lowest rank that failed.");
  bind_shared_things(module);
}

}  // namespace outcore::python
