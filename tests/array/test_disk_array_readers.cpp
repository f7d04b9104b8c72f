// Readers next to a job that commits: as long as they are open they see one complete state.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "array/arrays.hpp"
#include "array/verify.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::in_worlds;
using outcore::test::Model;
using outcore::test::options_in;
namespace fs = std::filesystem;

namespace {

const Extents shape{40, 30};
const Box all = Box::whole(shape);

void put(World& world, DiskArray& disk, double value) {
  Model model(shape);
  std::ranges::fill(model.data, value);
  if (world.rank() == 0) disk.put(all, model.memory(all));
  world.barrier();
}

/// The value that all elements of an array have.
double value_of(DiskArray& disk) {
  Model model(shape);
  disk.read_all_async(model.memory(all), all).wait();
  for (const double each : model.data) check::equal(each, model.data[0]);
  return model.data[0];
}

}  // namespace

TEST("readers of several states see theirs, whatever is committed meanwhile") {
  for (const store::CodecOptions& codec : {store::CodecOptions{}, store::blosc2_for(8)})
    for (const int processes : {1, 3}) {
      const TemporaryDirectory directory;
      const std::string path = directory.path() + "/array";
      in_worlds(processes, options_in(directory), [&](World& world) {
        DiskArray disk(world, shape, ElementType::float64,
                       {.path = path, .chunk = {8, 8}, .codec = codec, .group = 1});
        std::vector<std::pair<double, std::unique_ptr<DiskArray>>> readers;
        for (double value = 1; value <= 12; ++value) {
          put(world, disk, value);
          disk.flush();
          if (static_cast<int>(value) % 3 == 0)
            readers.emplace_back(value, std::make_unique<DiskArray>(DiskArray::open(world, path)));
          for (auto& [expected, reader] : readers) check::equal(value_of(*reader), expected);
        }
        disk.close();
        DiskArray again = DiskArray::open(world, path, false);  // another writer finds them, too
        for (double value = 13; value <= 15; ++value) {
          put(world, again, value);
          again.flush();
          for (auto& [expected, reader] : readers) check::equal(value_of(*reader), expected);
        }
        for (auto& [expected, reader] : readers) reader->close();
        put(world, again, 16);
        again.close();
        DiskArray last = DiskArray::open(world, path);
        check::equal(value_of(last), 16.0);
        last.close();
        world.barrier();
        int tables = 0;
        for (const auto& entry : fs::directory_iterator(path))
          tables += entry.path().filename().string().starts_with("table.");
        check::equal(tables, processes);  // nothing of the states before is left
        world.barrier();
      });
    }
}

TEST("opening beside a job that commits in a loop gives one whole state") {
  const TemporaryDirectory directory("/dev/shm");
  const std::string path = directory.path() + "/array";
  std::atomic<bool> made = false, stop = false;
  std::thread writer([&] {
    in_worlds(2, options_in(directory), [&](World& world) {
      DiskArray disk(world, shape, ElementType::float64, {.path = path, .chunk = {8, 8}, .group = 1});
      for (double value = 1;; ++value) {
        put(world, disk, value);
        disk.flush();
        made = true;
        std::int64_t stops = stop ? 1 : 0;
        world.transport().all_reduce(std::span(&stops, 1), transport::Reduction::max);
        if (stops) break;
      }
      disk.close();
    });
  });
  while (!made) std::this_thread::yield();
  double last = 0;
  in_worlds(1, options_in(directory), [&](World& world) {
    for (int i = 0; i < 100; ++i) {
      for (const std::string& damage : verify_array(path).damage) check::equal(damage, "");
      DiskArray disk = DiskArray::open(world, path);
      const double value = value_of(disk);
      check::is_true(value >= last, "states do not go back");
      check::equal(value_of(disk), value);
      last = value;
      disk.close();
    }
  });
  stop = true;
  writer.join();
}

TEST_MAIN
