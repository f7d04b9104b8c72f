// Owners of chunks when something is wrong: with their disk, or with what they are asked to do.
#include <atomic>
#include <cerrno>
#include <numeric>
#include <random>

#include "array/array_services.hpp"
#include "array/arrays.hpp"
#include "device/fault.hpp"
#include "dio/chunks/client.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using device::Fault;
using dio::ChunkClient;
using dio::ChunkLayout;
using dio::ChunkStore;
using outcore::test::in_worlds;
using outcore::test::Model;

namespace {

std::atomic<int> write_failure, read_failure;  // errno, of the disks of all owners
std::atomic<bool> held;                        // the disks of all owners do nothing

device::FaultPlan failing() {
  device::FaultPlan plan;
  plan.script = [](std::uint64_t, const device::Operation& operation) {
    held.wait(true);
    const int failure = operation.kind == device::Operation::Kind::write  ? write_failure.load()
                        : operation.kind == device::Operation::Kind::read ? read_failure.load()
                                                                          : 0;
    return failure == ENOSPC ? Fault::full : failure == EIO ? Fault::io_error : Fault::none;
  };
  return plan;
}

/// An array of 16 chunks of 8 x 8, dealt out one by one, on disks that fail on demand.
class FaultyArray {
 public:
  FaultyArray(World& world, const std::string& directory, std::int64_t cache_bytes)
      : world_(world), engine_(device::make_fault_engine(device::make_thread_engine(1), failing())) {
    write_failure = read_failure = 0;
    ChunkLayout layout{.grid = dio::ChunkGrid({32, 32}, {8, 8}, sizeof(double), world.size(), 1),
                       .number = 1000,
                       .owners = {}};
    layout.owners.resize(static_cast<std::size_t>(world.size()));
    std::iota(layout.owners.begin(), layout.owners.end(), 0);
    store_ = std::make_shared<ChunkStore>(layout.grid, layout.type, false);
    const store::Geometry geometry{.slot_bytes = layout.grid.chunk_bytes(),
                                   .slots = layout.grid.slots(world.rank())};
    store_->add(world.rank(),
                store::Component::create(directory + "/part" + std::to_string(world.rank()), geometry,
                                         {.engine = engine_.get(), .unlink_after_open = true}),
                {.max_bytes = cache_bytes});
    array::ArrayServices& services = array::ArrayServices::of(world);
    known_ = services.chunks.add(layout.number, store_);
    client_ = std::make_shared<ChunkClient>(world, services.chunks, layout, store_, 0);
    world.barrier();
  }
  ~FaultyArray() {
    client_->close();
    client_.reset();
    world_.barrier();
    known_.reset();
    store_.reset();
  }
  [[nodiscard]] ChunkStore& store() { return *store_; }
  [[nodiscard]] ChunkClient& client() { return *client_; }

  void transfer(dio::ChunkOperation operation, const Box& box, Model& model) {
    Request(client_->start(operation, Slices(box), model.memory(box), nullptr, true)).wait();
  }

 private:
  World& world_;
  std::unique_ptr<device::FaultEngine> engine_;
  std::shared_ptr<ChunkStore> store_;
  std::shared_ptr<void> known_;
  std::shared_ptr<ChunkClient> client_;
};

void for_worlds(const std::function<void(World&, const std::string& directory)>& body) {
  const TemporaryDirectory directory;
  for (const int processes : {1, 2, 4})
    in_worlds(processes,
              {.memory_bytes = 1 << 30, .scratch = directory.path(), .node_for_each_process = true},
              [&](World& world) { body(world, directory.path()); });
}

const Box all{{0, 0}, {32, 32}};

}  // namespace

TEST("an owner whose disk fails tells the one who asked, and serves on") {
  for_worlds([](World& world, const std::string& directory) {
    for (const int failure : {ENOSPC, EIO}) {
      FaultyArray array(world, directory, 0);  // two chunks
      Model first({32, 32}), second({32, 32}), back({32, 32});
      std::iota(first.data.begin(), first.data.end(), 0.0);
      std::iota(second.data.begin(), second.data.end(), 5000.0);
      if (world.rank() == 0) {
        array.transfer(dio::ChunkOperation::put, all, first);
        write_failure = failure;
        const Error error = check::throws<Error>([&] {
          for (int i = 0; i < 3; ++i) array.transfer(dio::ChunkOperation::put, all, second);
        });
        check::equal(error.errno_value(), failure);
        check::contains(error.what(), "part");
        array.transfer(dio::ChunkOperation::get, all, back);  // each element is the old one or the new one
        for (std::size_t i = 0; i < back.data.size(); ++i)
          check::is_true(back.data[i] == first.data[i] || back.data[i] == second.data[i]);
        write_failure = 0;
        array.transfer(dio::ChunkOperation::put, all, second);
        array.transfer(dio::ChunkOperation::get, all, back);
        check::is_true(back.data == second.data);
        read_failure = EIO;
        check::equal(
            check::throws<Error>([&] { array.transfer(dio::ChunkOperation::get, all, back); }).errno_value(),
            EIO);
        read_failure = 0;
        array.transfer(dio::ChunkOperation::get, all, back);
        check::is_true(back.data == second.data);
      }
      world.barrier();
    }
  });
}

TEST("requests return before the disks of the owners have done anything") {
  for_worlds([](World& world, const std::string& directory) {
    FaultyArray array(world, directory, 0);
    if (world.rank() == 0) {
      Model model({32, 32}), back({32, 32});
      std::iota(model.data.begin(), model.data.end(), 0.0);
      array.transfer(dio::ChunkOperation::put, all, model);
      held = true;
      Request request(
          array.client().start(dio::ChunkOperation::get, Slices(all), back.memory(all), nullptr, false));
      const bool early = request.test();
      held = false;
      held.notify_all();
      check::is_true(!early);
      request.wait();
      check::is_true(back.data == model.data);
    }
    world.barrier();
  });
}

TEST("nothing that was acknowledged is lost when writing behind fails") {
  for_worlds([](World& world, const std::string& directory) {
    FaultyArray array(world, directory, 1 << 20);
    Model model({32, 32}), back({32, 32});
    if (world.rank() == 0) {
      write_failure = ENOSPC;
      std::iota(model.data.begin(), model.data.end(), 1.0);
      array.transfer(dio::ChunkOperation::put, all, model);
      array.transfer(dio::ChunkOperation::accumulate, all, model);
    }
    world.barrier();
    const auto flush = [&] { (void)ChunkStore::Pause(array.store(), std::span(&all, 1), true); };
    check::equal(check::throws<Error>(flush).errno_value(), ENOSPC);
    world.barrier();
    write_failure = 0;
    flush();  // and forget: what is read now comes from the disk
    world.barrier();
    array.transfer(dio::ChunkOperation::get, all, back);
    for (std::size_t i = 0; i < back.data.size(); ++i)
      check::equal(back.data[i], 2.0 * static_cast<double>(i + 1));
    world.barrier();
  });
}

TEST("a put that failed and that nobody waited for is told by the next settlement, once") {
  for_worlds([](World& world, const std::string& directory) {
    FaultyArray array(world, directory, 0);
    Model model({32, 32});
    write_failure = EIO;
    world.barrier();
    if (world.rank() == 0) {
      for (int i = 0; i < 3; ++i)
        (void)array.client().start(dio::ChunkOperation::put, Slices(all), model.memory(all), nullptr, false);
      const std::exception_ptr failure = array.client().settle();
      check::is_true(failure != nullptr);
      check::equal(check::throws<Error>([&] { std::rethrow_exception(failure); }).errno_value(), EIO);
      check::is_true(array.client().settle() == nullptr);
    }
    world.barrier();
    write_failure = 0;
    world.barrier();
  });
}

TEST("headers that ask for what is not there are refused, whatever they hold") {
  for_worlds([](World& world, const std::string& directory) {
    FaultyArray array(world, directory, 1 << 20);
    const std::uint32_t procedure = world.procedure("outcore: chunks of disk arrays");
    std::mt19937 random(1);
    const int target = (world.rank() + 1) % world.size();
    dio::ChunkCall good(1000, target, dio::ChunkOperation::put, Slices(Box{{0, 0}, {3, 3}}));
    std::vector<std::byte> payload(64);
    for (int i = 0; i < 400; ++i) {
      dio::ChunkCall header = good;
      auto* bytes = reinterpret_cast<unsigned char*>(&header);
      const auto changes = 1 + random() % 4;
      for (unsigned k = 0; k < changes; ++k)
        bytes[random() % sizeof header] = static_cast<unsigned char>(random());
      const std::size_t size = i % 10 == 0 ? random() % sizeof header : sizeof header;
      try {
        world
            .call(target, procedure, std::as_bytes(std::span(&header, 1)).first(size),
                  std::span(payload).first(random() % payload.size()), {.max_reply_bytes = 100})
            .wait();
      } catch (const Error& error) {
        check::is_true(
            error.errno_value() == EINVAL || error.errno_value() == EBADF || error.errno_value() == EMSGSIZE,
            error.what());
      }
    }
    Model model({32, 32});
    array.transfer(dio::ChunkOperation::get, all, model);
    world.barrier();
  });
}

TEST("a handle is read back, and one that is damaged is refused or harmless") {
  ChunkLayout layout{.grid = dio::ChunkGrid({32, 40}, {8, 9}, 8, 3, 2), .number = 77, .owners = {4, 5, 6}};
  const std::string bytes = layout.encode();
  const ChunkLayout back = ChunkLayout::decode(bytes);
  check::is_true(back.grid.shape() == layout.grid.shape() && back.grid.chunk() == layout.grid.chunk() &&
                 back.grid.group() == 2 && back.number == 77 && back.owners == layout.owners);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    try {
      (void)ChunkLayout::decode(damaged);
    } catch (const Error& error) {
      check::equal(error.errno_value(), EINVAL);
    }
  }
}

TEST_MAIN
