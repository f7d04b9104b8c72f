// Jobs that commit arrays in known states, and checks of the arrays that are found later.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "crash/images.hpp"
#include "crash/processes.hpp"
#include "crash/recorder.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"

namespace crash {

/// States by their numbers, as `allow` takes them.
template <class... State>
std::uint64_t any_of(State... states) {
  return ((std::uint64_t{1} << states) | ...);
}

/// State 0 means that there is no array. Every other state has content of its own, and its number as
/// metadata.
class States {
 public:
  static constexpr std::int64_t chunk = 1024, chunks = 4;  // numbers: a chunk is two pages, or one compressed
  static inline const Extents shape{chunk * chunks};
  static inline const Box all = Box::whole(shape);

  /// options.path is the name of the array in the directory that is recorded.
  explicit States(DiskArrayOptions options, std::uint64_t seed = 1)
      : options_(std::move(options)), random_(seed), contents_(1, Content(std::size_t{chunk * chunks})) {
    options_.chunk = {chunk};
  }

  [[nodiscard]] int last() const noexcept { return static_cast<int>(contents_.size()) - 1; }
  [[nodiscard]] std::string path(const std::string& directory) const {
    return directory + "/" + options_.path;
  }

  /// A new state, which differs from another one in `box`; the new numbers can be compressed or not. Not
  /// collective.
  int add(int before, const Box& box) {
    Content content = contents_[static_cast<std::size_t>(before)];
    const std::uint64_t below = random_() % 2 ? 16 : std::uint64_t{1} << 50;
    for (std::int64_t i = box.begin[0]; i < box.end[0]; ++i)
      content[static_cast<std::size_t>(i)] = static_cast<double>(random_() % below);
    contents_.push_back(std::move(content));
    return last();
  }
  /// The box is the whole array, some chunks, or parts of chunks.
  Box some_box() {
    const std::int64_t unit = random_() % 2 ? chunk : 1, units = chunk * chunks / unit;
    const auto below = [this](std::int64_t most) {
      return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most));
    };
    if (below(4) == 0) return all;
    const std::int64_t first = below(units);
    return {.begin = {first * unit}, .end = {(first + 1 + below(units - first)) * unit}};
  }

  [[nodiscard]] DiskArray make(World& world, const std::string& directory, bool overwrite) const {
    DiskArrayOptions options = options_;
    options.path = path(directory);
    options.overwrite = overwrite;
    return {world, shape, ElementType::float64, options};
  }
  [[nodiscard]] DiskArray open(World& world, const std::string& directory, bool read_only) const {
    return DiskArray::open(world, path(directory), read_only);
  }
  /// Collective: writes the content of that state, and commits it.
  void commit(DiskArray& array, int state, const Box& box = all) const {
    Content content = contents_[static_cast<std::size_t>(state)];
    array.write_all_async(memory(content, box), box).wait();
    array.flush(std::to_string(state));
  }

  /// The state of an array. Collective. Throws Error(EIO) at all processes if it is none of the states.
  int of(World& world, DiskArray& array) const {
    Content content(contents_[0].size());
    array.read_all_async(memory(content, all), all).wait();
    const int state = std::stoi(array.metadata());
    world.together("look at an array", static_cast<std::uint64_t>(state), [&] {
      if (content != contents_[static_cast<std::size_t>(state)])
        throw Error(EIO, {.attempted = "look at an array",
                          .detail = "it says it is state " + std::to_string(state) + ", and is not"});
    });
    return state;
  }
  /// 0 if there is no array. Collective.
  int found(World& world, const std::string& directory) const {
    try {
      DiskArray array = open(world, directory, true);
      const int state = of(world, array);
      array.drop();
      return state;
    } catch (const Error& error) {  // by all processes
      const std::string& detail = error.context().detail;
      const bool none = error.errno_value() == ENOENT && error.context().attempted == "open disk array";
      if (none && (detail.empty() || detail.starts_with("there is no manifest"))) return 0;
      throw;
    }
  }

 private:
  using Content = std::vector<double>;

  static Strided memory(Content& content, const Box& box) {
    return {reinterpret_cast<std::byte*>(content.data() + box.begin[0]), {sizeof(double)}};
  }

  DiskArrayOptions options_;
  std::mt19937_64 random_;
  std::vector<Content> contents_;
};

/// Opens what is found, for reads; if the next job `goes_on`, opens it for writes, too, and commits another
/// state over it.
inline Look look_at(Processes& processes, const States& states, bool goes_on = true) {
  return [&processes, &states, goes_on](const std::string& directory, std::uint64_t allowed) -> std::string {
    const auto step = [&](World& world) {
      const int state = states.found(world, directory);
      if ((allowed >> state & 1) == 0)
        throw Error(EIO, {.attempted = "look at an array",
                          .detail = "it is state " + std::to_string(state) + ", which it must not be"});
      if (!goes_on) return;
      const int next = state == states.last() ? 1 : states.last();
      DiskArray array =
          state == 0 ? states.make(world, directory, true) : states.open(world, directory, false);
      if (state != 0 && states.of(world, array) != state)
        throw Error(EIO, {.attempted = "look at an array", .detail = "who writes finds another state"});
      states.commit(array, next);
      array.drop();
      if (states.found(world, directory) != next)
        throw Error(EIO, {.attempted = "look at an array", .detail = "what is committed next is not found"});
    };
    try {
      processes.run(step);
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  };
}

/// A job that works in a directory, and records which states may be found there.
class Job {
 public:
  /// `possible`: the states that may be found when the job begins.
  Job(Processes& processes, States& states, std::string directory, std::uint64_t possible)
      : processes_(processes),
        states_(states),
        directory_(std::move(directory)),
        possible_(possible),
        handles_(static_cast<std::size_t>(processes.count())) {}

  [[nodiscard]] int known() const noexcept { return known_; }  ///< the state that is committed

  /// With `overwrite` an array that is there stays until the first commit of this one.
  void make(bool overwrite = false) {
    const bool stays = overwrite && there();
    if (!stays) allow(possible_ | any_of(0));
    all([&](World& world) {
      handles_[static_cast<std::size_t>(world.rank())].emplace(states_.make(world, directory_, overwrite));
    });
    if (!stays) settle(0);
    written_ = 0;
  }
  /// Whether an array is found. The state that is found, or that there is none, is known from now on.
  bool there() {
    all([&](World& world) {
      const int state = states_.found(world, directory_);
      if (world.rank() == 0) known_ = state;
    });
    return known_ != 0;
  }
  /// The state that is found counts as committed from now on, whoever has left it.
  void open() {
    all([&](World& world) {
      auto& mine = handles_[static_cast<std::size_t>(world.rank())];
      mine.emplace(states_.open(world, directory_, false));
      const int state = states_.of(world, *mine);
      if (world.rank() == 0) known_ = state;
    });
    settle(known_);
    written_ = known_;
  }
  /// Commits another state.
  void commit() {
    const Box box = written_ == 0 ? States::all : states_.some_box();
    const int next = states_.add(written_, box);
    allow(possible_ | any_of(next));
    all([&](World& world) { states_.commit(mine(world), next, box); });
    settle(next);
    written_ = next;
  }
  void remove() {
    allow(possible_ | any_of(0));
    all([&](World& world) { mine(world).remove(); });
    settle(0);
  }
  /// Somebody else opens the committed state, and reads it until the job ends.
  void read() {
    std::vector<std::optional<DiskArray>> handles(handles_.size());
    all([&](World& world) {
      handles[static_cast<std::size_t>(world.rank())].emplace(states_.open(world, directory_, true));
    });
    readers_.emplace_back(known_, std::move(handles));
  }
  void drop() {
    for (auto& [state, handles] : std::exchange(readers_, {}))
      all([&](World& world) {
        DiskArray& reader = *handles[static_cast<std::size_t>(world.rank())];
        check::equal(states_.of(world, reader), state);
        reader.drop();
      });
    let_go();
  }
  /// Lets the readers read again.
  void let_go() {
    all([&](World& world) { mine(world).drop(); });
  }

 private:
  /// From now on this state is found, and no other.
  void settle(int state) {
    known_ = state;
    possible_ = any_of(state);
    allow(possible_);
  }
  void all(const std::function<void(World&)>& body) { processes_.run(body); }
  DiskArray& mine(World& world) { return *handles_[static_cast<std::size_t>(world.rank())]; }

  Processes& processes_;
  States& states_;
  const std::string directory_;
  std::uint64_t possible_;
  int known_ = 0;    ///< the state that is found
  int written_ = 0;  ///< of this job's array, which may not yet have replaced the one that is found
  std::vector<std::optional<DiskArray>> handles_;
  std::vector<std::pair<int, std::vector<std::optional<DiskArray>>>> readers_;  ///< with the state of each
};

/// A kind of array, the processes that use it, and what lies in the directory where it will be.
struct Setting {
  int processes = 1;
  bool apart = false;  ///< each process is a node, with a disk of its own
  store::CodecOptions codec{};
  std::int64_t group = 1;  ///< number of chunks that lie together

  [[nodiscard]] DiskArrayOptions options() const {
    return {.path = apart ? "disk{node}/array" : "array", .codec = codec, .group = group};
  }
  void prepare(const std::string& directory) const {
    for (int node = 0; apart && node < processes; ++node)
      std::filesystem::create_directory(directory + "/disk" + std::to_string(node));
  }
};

/// What a job has done to the disk.
struct Recorded {
  Disk start;
  Log log{};

  [[nodiscard]] Disk at(std::size_t cut) const {
    Disk disk = start;
    for (std::size_t i = 0; i < cut; ++i) disk.apply(log[i]);
    return disk;
  }
  [[nodiscard]] Disk end() const { return at(log.size()); }
};

using Work = std::function<void(Job& job)>;

inline Recorded record(Processes& processes, States& states, const Setting& setting, const Work& work) {
  const TemporaryDirectory directory(fast_place());
  setting.prepare(directory);
  Recorded recorded{.start = Disk(directory)};
  begin_recording(directory, recorded.start);
  allow(any_of(0));
  Job job(processes, states, directory, any_of(0));
  work(job);
  recorded.log = end_recording();
  return recorded;
}

/// Another job goes on where one has ended or was killed: not everything that this left is safe.
inline Recorded record_after(Processes& processes, States& states, const Disk& start, const Work& work) {
  const TemporaryDirectory directory(fast_place());
  start.live().write(directory);
  Recorded recorded{.start = start};
  begin_recording(directory, start);
  allow(start.allowed());
  Job job(processes, states, directory, start.allowed());
  work(job);
  recorded.log = end_recording();
  return recorded;
}

}  // namespace crash
