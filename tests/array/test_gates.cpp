// What processes make inside the gate of a collective call: if this throws at one, all throw the same error.
#include <functional>
#include <stdexcept>
#include <string>

#include "array/arrays.hpp"
#include "outcore/error.hpp"
#include "outcore/node_array.hpp"
#include "outcore/record_file.hpp"
#include "outcore/shared_file.hpp"
#include "outcore/sparse_array.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::in_worlds;

namespace {

/// Called in the gate; throws at the process that must fail.
using Check = std::function<void()>;

/// A call in which one process, the first or the last, cannot make its part; in later calls all can.
void stray(World& world, const std::function<void(const Check& check)>& call) {
  for (const int rank : {0, world.size() - 1}) {
    const Error error = check::throws<Error>([&] {
      call([&] {
        if (world.rank() == rank) throw std::runtime_error("rank " + std::to_string(rank) + " cannot");
      });
    });
    check::contains(error.what(), "rank " + std::to_string(rank) + " cannot");
    world.barrier();
    call([] {});
  }
}

void for_worlds(const std::function<void(World&, const std::string& place)>& body) {
  const TemporaryDirectory directory;
  for (const int processes : {2, 4})
    in_worlds(processes, {.memory_bytes = 1 << 30, .scratch = directory.path()},
              [&](World& world) { body(world, directory.path()); });
}

}  // namespace

TEST("an array in memory that one process cannot make is made by none") {
  for_worlds([](World& world, const std::string&) {
    stray(world, [&](const Check& check) {
      GlobalArray array(world, [&](ElementType& type) {
        check();
        type = ElementType::float64;
        return Distribution::regular({3, 4}, world.size());
      });
      array.close();
    });
    stray(world, [&](const Check& check) {
      NodeArray array(world, [&](ElementType& type) {
        check();
        type = ElementType::float64;
        return Extents{3, 4};
      });
      array.close();
    });
  });
}

TEST("a disk array that one process cannot make, open or flush is an error at all") {
  for_worlds([](World& world, const std::string& place) {
    const std::string path = place + "/array";
    stray(world, [&](const Check& check) {
      DiskArray array(world, [&](Extents& shape, ElementType& type, DiskArrayOptions& options) {
        check();
        shape = {3, 4};
        type = ElementType::float64;
        options.path = path;
        options.overwrite = true;
      });
      array.close();
    });
    stray(world, [&](const Check& check) {
      DiskArray array = DiskArray::open(world, [&] {
        check();
        return DiskArrayOpening{.path = path};
      });
      array.close();
    });
    DiskArray array = DiskArray::open(world, path, false);
    stray(world, [&](const Check& check) {
      array.flush([&] {
        check();
        return std::string("metadata");
      });
    });
    check::equal(array.metadata(), std::string("metadata"));
    array.close();
  });
}

TEST("a block-sparse array that one process cannot make, open or flush is an error at all") {
  const TileMap wanted({{0, 3, 5}, {0, 2}}, {true, false});
  for_worlds([&](World& world, const std::string& place) {
    const std::string path = place + "/tiles";
    stray(world, [&](const Check& check) {
      BlockSparseArray array(world, [&](TileMap& map, ElementType& type, DiskArrayOptions& options) {
        check();
        map = wanted;
        type = ElementType::float64;
        options.path = path;
        options.overwrite = true;
      });
      array.storage().close();
    });
    stray(world, [&](const Check& check) {
      BlockSparseArray array = BlockSparseArray::open(world, [&] {
        check();
        return DiskArrayOpening{.path = path};
      });
      check::equal(array.map().count(), 1);
      array.storage().close();
    });
    BlockSparseArray array = BlockSparseArray::open(world, path, false);
    stray(world, [&](const Check& check) {
      array.flush([&] {
        check();
        return std::string("metadata");
      });
    });
    check::equal(array.metadata(), std::string("metadata"));
    array.storage().close();
  });
}

TEST("a shared file or record file that one process cannot make is made by none") {
  for_worlds([](World& world, const std::string&) {
    stray(world, [&](const Check& check) {
      file::SharedFile made(world, [&](std::string& name, file::SharedFileOptions&) {
        check();
        name = "file";
      });
      made.close();
    });
    stray(world, [&](const Check& check) {
      file::RecordFile made(world, [&](std::string& name, file::RecordFileOptions& options) {
        check();
        name = "records";
        options.records = 3;
      });
      made.close();
    });
  });
}

TEST_MAIN
