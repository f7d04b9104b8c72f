// One of the two processes of `bench gpc`: `_gpc_worker RESULT ROUNDS PAIRS`. Process 0 calls a procedure at
// process 1, which is idle, polls, computes or sleeps, and moves as much by MPI, all in turns. Then both
// compute with and without a service, in turns. Lines of RESULT: what was measured, the size of the reply in
// bytes, and a value for each round: seconds, or a share.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "outcore/world.hpp"

namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

constexpr std::size_t sizes[] = {8, 1024, 16384, 131072, 1 << 20};
constexpr int caller = 0, target = 1;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds of one of several in turn, each after a pause.
double median_of(int repeats, const std::function<void()>& body, std::chrono::milliseconds pause = 0ms) {
  std::vector<double> taken;
  for (int i = 0; i < repeats; ++i) {
    if (pause > 0ms) std::this_thread::sleep_for(pause);
    const double start = now();
    body();
    taken.push_back(now() - start);
  }
  std::sort(taken.begin(), taken.end());
  return taken[taken.size() / 2];
}

/// Some arithmetic that calls nothing and touches little memory.
double compute(int steps) {
  double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < steps; ++i)
    for (double& each : x) each = each * 1.000001 + 0.5;
  return x[0] + x[7];
}

/// Processor time that threads of the library have used, in seconds.
double service_s() {
  double total = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(entry.path() / "comm") >> name;
    double ns = 0;
    if (name.starts_with("outcore-")) std::ifstream(entry.path() / "schedstat") >> ns;
    total += ns * 1e-9;
  }
  return total;
}

/// What a call needs at both sides.
class Calls {
 public:
  /// Answers come out of one-sided memory, or else out of memory of the process itself.
  explicit Calls(outcore::World& world)
      : world_(world),
        region_(std::make_shared<outcore::World::Region>(world.allocate(1 << 20, "answers"))),
        own_(std::make_shared<Bytes>(1 << 20)) {
    bytes_ = world.register_procedure(
        "bytes", [this](outcore::Call call) { call.answer({region_->local(), size_in(call)}, region_); });
    own_bytes_ = world.register_procedure(
        "own bytes", [this](outcore::Call call) { call.answer({own_->data(), size_in(call)}, own_); });
    hold_ = world.register_procedure(
        "hold", [this](outcore::Call call) { held_ = std::make_unique<outcore::Call>(std::move(call)); });
    release_ = world.register_procedure("release", [this](outcore::Call call) {
      if (held_) std::exchange(held_, nullptr)->answer();
      call.answer();
      released_ = true;
      released_.notify_one();
    });
  }

  void get(std::span<std::byte> reply, bool own = false) {
    const std::size_t size = reply.size();
    world_.call(target, own ? own_bytes_ : bytes_, std::as_bytes(std::span(&size, 1)), {}, {.reply = reply})
        .wait();
  }
  void release() { world_.call(target, release_, {}).wait(); }

  // ---- what the target does until it is released ----

  void idle() { world_.barrier(); }  // the caller comes later
  void poll() {
    auto request = world_.call(target, hold_, {});
    while (!request.test()) {
    }
    released_ = false;
  }
  void compute_on() {
    volatile double sum = 0;
    while (!released_) sum = sum + compute(1000);
    released_ = false;
  }
  void sleep() {
    released_.wait(false);
    released_ = false;
  }

 private:
  static std::size_t size_in(const outcore::Call& call) {
    std::size_t size = 0;
    std::memcpy(&size, call.header().data(), sizeof size);
    return size;
  }

  outcore::World& world_;
  std::shared_ptr<outcore::World::Region> region_;
  std::shared_ptr<Bytes> own_;
  std::uint32_t bytes_ = 0, own_bytes_ = 0, hold_ = 0, release_ = 0;
  std::unique_ptr<outcore::Call> held_;
  std::atomic<bool> released_{false};
};

class Results {
 public:
  void keep(const std::string& name, std::size_t size, double value) {
    values_[name + '\t' + std::to_string(size)].push_back(value);
  }
  void write(const char* path) const {
    std::ofstream file(path);
    for (const auto& [name, values] : values_) {
      file << name;
      for (const double each : values) file << '\t' << each;
      file << '\n';
    }
  }

 private:
  std::map<std::string, std::vector<double>> values_;
};

class Transfers {
 public:
  Transfers(outcore::World& world, Results& results)
      : world_(world), results_(results), calls_(world), here_(1 << 20), there_(1 << 20) {
    MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  }
  ~Transfers() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  void round() {
    calls("idle", [&] { calls_.idle(); });
    gets();
    calls("polling", [&] { calls_.poll(); });
    ping_pongs();
    calls("computing", [&] { calls_.compute_on(); });
    calls("asleep", [&] { calls_.sleep(); });
  }

 private:
  void calls(const std::string& name, const std::function<void()>& state) {
    world_.barrier();
    if (world_.rank() == target) {
      state();
    } else {
      std::this_thread::sleep_for(20ms);
      for (const std::size_t size : sizes) {
        const auto reply = std::span(here_).first(size);
        results_.keep(name, size, median_of(repeats(size), [&] { calls_.get(reply); }));
        if (name == "polling")
          results_.keep("own memory", size, median_of(repeats(size), [&] { calls_.get(reply, true); }));
      }
      const auto reply = std::span(here_).first(8);
      if (name != "polling")
        results_.keep(name + " after a pause", 8, median_of(9, [&] { calls_.get(reply); }, 5ms));
      name == "idle" ? world_.barrier() : calls_.release();
    }
  }

  /// The target is inside MPI meanwhile.
  void gets() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_.rank() == caller)
      for (const std::size_t size : sizes)
        results_.keep("get", size, median_of(repeats(size), [&] {
                        const auto count = static_cast<int>(size);
                        MPI_Get(here_.data(), count, MPI_BYTE, target, 0, count, MPI_BYTE, window_);
                        MPI_Win_flush(target, window_);
                      }));
    MPI_Barrier(MPI_COMM_WORLD);
  }

  void ping_pongs() {
    MPI_Barrier(MPI_COMM_WORLD);
    const int other = 1 - world_.rank();
    for (const std::size_t size : sizes) {
      const auto count = static_cast<int>(size);
      const double taken = median_of(repeats(size), [&] {
        if (world_.rank() == caller) {
          MPI_Send(here_.data(), 8, MPI_BYTE, other, 1, MPI_COMM_WORLD);
          MPI_Recv(here_.data(), count, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
          MPI_Recv(there_.data(), 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          MPI_Send(there_.data(), count, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        }
      });
      if (world_.rank() == caller) results_.keep("ping-pong", size, taken);
    }
  }

  static int repeats(std::size_t size) { return size <= 16384 ? 101 : 41; }

  outcore::World& world_;
  Results& results_;
  Calls calls_;
  Bytes here_, there_;
  void* memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

double worst_of_all(double value) {
  double worst = 0;
  MPI_Allreduce(&value, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return worst;
}

/// Seconds of a computation of both processes at once, the slower one.
double computation() {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now();
  volatile double sum = compute(30'000'000);
  (void)sum;
  return worst_of_all(now() - start);
}

/// A service at rest.
class Service {
 public:
  Service() : world_(outcore::World::mpi(MPI_Comm_c2f(MPI_COMM_WORLD))) {
    world_.register_procedure("answer", [](outcore::Call call) { call.answer(); });
    std::this_thread::sleep_for(50ms);
  }
  outcore::World& world() { return world_; }

 private:
  outcore::World world_;
};

void share_of_a_core(const char* name, Results& results) {
  for (int i = 0; i < 3; ++i) {
    const double start = now(), before = service_s();
    std::this_thread::sleep_for(500ms);
    results.keep(name, 0, worst_of_all((service_s() - before) / (now() - start)));
  }
}

void services_at_rest(int pairs, Results& results) {
  (void)computation();
  for (int pair = 0; pair < pairs; ++pair) {
    double with = 0, without = 0;
    const auto serve = [&] {
      const Service service;
      with = computation();
    };
    if (pair % 2 == 0) serve();
    without = computation();
    if (pair % 2 != 0) serve();
    results.keep("slower", 0, with / without - 1);
  }
  Service service;
  share_of_a_core("share", results);
  const auto region = service.world().allocate(4096, "memory that is served, too");
  std::this_thread::sleep_for(50ms);
  share_of_a_core("share with one-sided memory", results);
}

/// Each process to a core of its own, as launchers do if they are asked to.
void bind_to_core() {
  for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK"})
    if (const char* rank = std::getenv(name)) {
      cpu_set_t all, own;
      CPU_ZERO(&all);
      CPU_ZERO(&own);
      sched_getaffinity(0, sizeof all, &all);
      int wanted = std::atoi(rank);
      for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &all) && wanted-- == 0) CPU_SET(core, &own);
      if (CPU_COUNT(&own) == 1) sched_setaffinity(0, sizeof own, &own);
      return;
    }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  bind_to_core();
  int level = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Results results;
  {
    auto world = outcore::World::mpi(MPI_Comm_c2f(MPI_COMM_WORLD));
    Transfers transfers(world, results);
    for (int round = 0; round < std::atoi(argv[2]); ++round) transfers.round();
  }
  services_at_rest(std::atoi(argv[3]), results);
  if (rank == caller) results.write(argv[1]);
  MPI_Finalize();
  return 0;
}
