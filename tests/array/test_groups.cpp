// Groups of processes with disk arrays of their own, which other processes access.
#include <cerrno>
#include <numeric>

#include "array/arrays.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::in_worlds;
using outcore::test::Model;

namespace {

void for_worlds(const std::function<void(World&)>& body) {
  const TemporaryDirectory directory;
  for (const int processes : {1, 2, 3, 4})
    for (const bool distant : {false, true})
      in_worlds(processes,
                {.memory_bytes = 1 << 30, .scratch = directory.path(), .node_for_each_process = distant},
                body);
}

/// The handle of process `root`, at all processes.
std::string broadcast(World& world, std::string handle, int root) {
  auto size = static_cast<std::int64_t>(handle.size());
  world.transport().broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  handle.resize(static_cast<std::size_t>(size));
  world.transport().broadcast(std::as_writable_bytes(std::span(handle)), root);
  return handle;
}

const Extents shape{40, 30};
const Box all = Box::whole(shape);

}  // namespace

TEST("groups have arrays of their own, at the same time") {
  for_worlds([](World& world) {
    const int color = world.rank() % 2;
    const std::unique_ptr<World> group = world.split(color, -world.rank());
    check::equal(group->size(), (world.size() + 1 - color) / 2);
    check::equal(group->rank(), group->size() - 1 - world.rank() / 2);
    check::is_true(&group->budget() == &world.budget());
    DiskArray disk(*group, shape, ElementType::float64, {.chunk = {8, 8}});
    Model model(shape), back(shape);
    std::iota(model.data.begin(), model.data.end(), 1000.0 * color);
    if (group->rank() == 0) disk.put(all, model.memory(all));
    group->barrier();
    disk.get(all, back.memory(all));
    check::is_true(back.data == model.data);
    group->barrier();
    disk.close();
    group->close();
    world.barrier();
  });
}

TEST("a process may be in no group") {
  for_worlds([](World& world) {
    const std::unique_ptr<World> group = world.split(world.rank() == 0 ? 0 : -1);
    check::equal(group != nullptr, world.rank() == 0);
    if (group) check::equal(group->size(), 1);
    world.barrier();
  });
}

TEST("arrays of a group are reached from all of the world they are shared with") {
  for_worlds([](World& world) {
    DiskArray::prepare(world);
    const int owners = (world.size() + 1) / 2;  // the last ones
    const bool member = world.rank() >= world.size() - owners;
    const std::unique_ptr<World> group = world.split(member ? 0 : -1);
    std::optional<DiskArray> disk;
    std::string handle;
    if (member) {
      disk.emplace(*group, shape, ElementType::float64, DiskArrayOptions{.chunk = {8, 8}, .group = 1});
      handle = disk->share(world);
    }
    handle = broadcast(world, handle, world.size() - 1);
    {
      DiskArrayAccess access = DiskArrayAccess::attach(world, handle, world.rank() % 2 ? 1 << 20 : 0);
      check::is_true(access.shape() == shape && access.type() == ElementType::float64);
      Model ones(shape), back(shape);
      std::ranges::fill(ones.data, 1.0);
      access.accumulate(all, ones.memory(all), nullptr);
      world.barrier();
      access.get(all, back.memory(all));
      for (const double each : back.data) check::equal(each, world.size());
      if (disk) {
        disk->get(all, back.memory(all));
        for (const double each : back.data) check::equal(each, world.size());
        group->barrier();
      }
      world.barrier();
      if (disk) disk->close();
      world.barrier();
      access.sync();
      const Error error = check::throws<Error>([&] { access.get(all, back.memory(all)); });
      check::equal(error.errno_value(), EBADF);
    }
    world.barrier();
  });
}

TEST("a world that was not prepared, and bytes that are no handle, are refused") {
  for_worlds([](World& world) {
    const std::unique_ptr<World> group = world.split(0);
    DiskArray disk(*group, shape, ElementType::float64);
    const Error error = check::throws<Error>([&] { (void)disk.share(world); });
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(), "prepare");
    DiskArray::prepare(world);
    const std::string handle = disk.share(world);
    check::equal(
        check::throws<Error>([&] { (void)DiskArrayAccess::attach(world, "no handle"); }).errno_value(),
        EINVAL);
    const std::unique_ptr<World> alone = world.split(world.rank());
    if (world.size() > 1)
      check::equal(check::throws<Error>([&] { (void)DiskArrayAccess::attach(*alone, handle); }).errno_value(),
                   EINVAL);
    disk.close();
  });
}

TEST_MAIN
