// Commits that fail, and jobs that try to write one array at the same time.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "array/arrays.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::errno_of;
using outcore::test::in_worlds;
using outcore::test::Model;
using outcore::test::options_in;
namespace fs = std::filesystem;

namespace {

const Extents shape{40, 30};
const Box all = Box::whole(shape);

/// Process 0 puts a whole array without the others.
void put(World& world, DiskArray& disk, double value) {
  Model model(shape);
  std::ranges::fill(model.data, value);
  if (world.rank() == 0) disk.put(all, model.memory(all));
  world.barrier();
}

/// The value that all elements of the last committed array have.
double committed_value(World& world, const std::string& path) {
  DiskArray disk = DiskArray::open(world, path);
  Model model(shape);
  disk.read_all_async(model.memory(all), all).wait();
  disk.close();
  for (const double each : model.data) check::equal(each, model.data[0]);
  return model.data[0];
}

}  // namespace

TEST("what was put before a commit that failed is committed by close") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray(world, shape, ElementType::float64, {.path = path}).close();
    DiskArray disk = DiskArray::open(world, path, false);
    put(world, disk, 3);
    const std::string in_the_way = path + "/table.0.2";
    if (world.rank() == 0) fs::create_directory(in_the_way);
    world.barrier();
    check::equal(errno_of([&] { disk.flush(); }), EISDIR);
    world.barrier();
    if (world.rank() == 0) fs::remove(in_the_way);
    world.barrier();
    disk.close();
    check::equal(committed_value(world, path), 3.0);
  });
}

TEST("a commit that took effect on one node only ends writing, and the new state is found later") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/on{node}";
  in_worlds(2, options_in(directory, true), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64, {.path = path, .chunk = {8, 8}, .group = 1});
    put(world, disk, 1);
    disk.flush();
    const std::string manifest = directory.path() + "/on1/manifest", kept = directory.path() + "/kept";
    if (world.rank() == 1) {
      fs::rename(manifest, kept);
      fs::create_directory(manifest);  // a file cannot take its name
    }
    put(world, disk, 2);
    check::equal(errno_of([&] { disk.flush(); }), EISDIR);
    Model model(shape);
    check::equal(errno_of([&] { disk.write_all_async(model.memory(all), all).wait(); }), EIO);
    check::equal(errno_of([&] { disk.put(all, model.memory(all)); }), EIO);
    check::equal(errno_of([&] { disk.flush(); }), EIO);
    check::contains(check::throws<Error>([&] { disk.close(); }).what(), "open it again");
    check::is_true(disk.closed());
    world.barrier();
    if (world.rank() == 1) {
      fs::remove(manifest);
      fs::rename(kept, manifest);
    }
    world.barrier();
    check::equal(committed_value(world, path), 2.0);
    DiskArray again = DiskArray::open(world, path, false);
    check::is_true(!fs::exists(manifest + ".next"), "it has been committed on this node, too");
    put(world, again, 3);
    again.close();
    check::equal(committed_value(world, path), 3.0);
  });
}

TEST("another array that lies on one of the nodes is not replaced by a commit") {
  const TemporaryDirectory directory;
  for (const std::string node : {"0", "1"})
    in_worlds(1, options_in(directory), [&](World& world) {
      DiskArray disk(world, shape, ElementType::float64,
                     {.path = directory.path() + "/on" + node, .placement = Placement::local});
      put(world, disk, 1);
      if (node == "0") disk.flush();  // a state more than the other
      put(world, disk, 1);
      disk.close();
    });
  in_worlds(2, options_in(directory, true), [&](World& world) {
    const std::string path = directory.path() + "/on{node}";
    check::equal(errno_of([&] { (void)DiskArray::open(world, path, false); }), EEXIST);
  });
  in_worlds(1, options_in(directory), [&](World& world) {
    for (const std::string node : {"0", "1"})
      check::equal(committed_value(world, directory.path() + "/on" + node), 1.0);
  });
}

TEST("an array on local disks that are one is committed once, and opened for writing once") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/one";
  in_worlds(3, options_in(directory, true), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64,
                   {.path = path, .placement = Placement::local, .chunk = {8, 8}, .group = 1});
    put(world, disk, 1);
    disk.close();
    check::equal(committed_value(world, path), 1.0);
    DiskArray again = DiskArray::open(world, path, false);
    put(world, again, 2);
    again.flush();
    put(world, again, 3);
    again.close();
    check::equal(committed_value(world, path), 3.0);
  });
}

TEST("an array that cannot be removed can be made anew when what was in the way has gone") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array", foreign = path + "/notes";
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64, {.path = path});
    put(world, disk, 1);
    disk.flush();
    if (world.rank() == 0) std::ofstream(foreign) << "mine";
    world.barrier();
    check::is_true(errno_of([&] { disk.remove(); }) != 0);
    check::is_true(disk.closed());
    if (world.rank() == 0) fs::remove(foreign);
    world.barrier();
    DiskArray next(world, shape, ElementType::float64, {.path = path, .overwrite = true});
    put(world, next, 2);
    next.close();
    check::equal(committed_value(world, path), 2.0);
  });
}

TEST("an array stays until the first commit of the one that replaces it") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  in_worlds(2, options_in(directory), [&](World& world) {
    {
      DiskArray disk(world, shape, ElementType::float64, {.path = path});
      put(world, disk, 1);
      disk.close();
    }
    for (const double value : {2.0, 3.0}) {
      // What is left by a job of more processes that was killed during a commit.
      if (world.rank() == 0) std::ofstream(path + "/table.5.100") << "table";
      DiskArray next(world, {3}, ElementType::int64, {.path = path, .overwrite = true});
      check::equal(next.generation(), std::uint64_t{0});
      check::equal(committed_value(world, path), value - 1);
      next.drop();
      check::equal(committed_value(world, path), value - 1);
      DiskArray last(world, shape, ElementType::float64, {.path = path, .overwrite = true});
      put(world, last, value);
      last.flush();
      check::equal(committed_value(world, path), value);
      put(world, last, 0);
      last.drop();
      check::equal(committed_value(world, path), value);
      world.barrier();
      // A manifest, and a table and a component of the one process that has a chunk.
      check::equal(std::distance(fs::directory_iterator(path), fs::directory_iterator()), std::ptrdiff_t{3});
      DiskArray again = DiskArray::open(world, path, false);
      put(world, again, value);
      again.close();
      check::equal(committed_value(world, path), value);
    }
    DiskArray none(world, {0, 3}, ElementType::int64, {.path = path, .overwrite = true});
    none.close();
    check::equal(DiskArray::open(world, path).shape().product(), std::int64_t{0});
  });
}

TEST("an array that somebody writes can be read, but neither written nor replaced by another") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/array";
  in_worlds(2, options_in(directory), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64, {.path = path});
    const auto make = [&](bool overwrite) {
      DiskArray(world, shape, ElementType::float64, {.path = path, .overwrite = overwrite});
    };
    check::equal(errno_of([&] { make(false); }), EBUSY);
    put(world, disk, 4);
    disk.flush();
    check::equal(errno_of([&] { make(true); }), EBUSY);
    check::equal(errno_of([&] { (void)DiskArray::open(world, path, false); }), EBUSY);
    check::equal(committed_value(world, path), 4.0);
    put(world, disk, 5);
    disk.close();
    check::equal(committed_value(world, path), 5.0);
    DiskArray next = DiskArray::open(world, path, false);
    check::equal(errno_of([&] { make(true); }), EBUSY);
    next.drop();
    make(true);
    check::equal(committed_value(world, path), 5.0);  // the other one has committed nothing
  });
}

TEST("closing the world at one process makes errors of what the others ask of disk arrays") {
  const TemporaryDirectory directory;
  in_worlds(3, options_in(directory), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64);
    Model model(shape);
    if (world.rank() == 1) return;
    const Error error = check::throws<Error>([&] { disk.write_all_async(model.memory(all), all).wait(); });
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(), "'close'");
    check::equal(errno_of([&] { disk.close(); }), EINVAL);
    if (world.rank() == 2) return;
    check::equal(errno_of([&] { disk.read_all_async(model.memory(all), all).wait(); }), EINVAL);
  });
}

TEST_MAIN
