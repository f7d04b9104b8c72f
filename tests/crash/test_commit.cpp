// The power fails while an array is made, committed, replaced and removed: what is found is the old state or the new
// one, and each sync is there for that.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "check.hpp"
#include "crash/arrays.hpp"

using namespace crash;  // NOLINT

namespace {

/// A kind of array, the processes that use it, and what lies in the directory where it will be.
struct Setting {
  int processes = 1;
  bool apart = false;  ///< each process is a node, with a disk of its own
  store::CodecOptions codec{};

  [[nodiscard]] DiskArrayOptions options() const {
    return {.path = apart ? "disk{node}/array" : "array", .codec = codec};
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
};

using Work = std::function<void(Job& job)>;

Recorded record(Processes& processes, States& states, const Setting& setting, const Work& work) {
  const TemporaryDirectory directory(fast_place());
  setting.prepare(directory);
  Recorded recorded{.start = Disk(directory)};
  begin_recording(directory, recorded.start);
  allow(any_of(0));
  Job job(processes, states, directory);
  work(job);
  recorded.log = end_recording();
  return recorded;
}

/// Another job goes on where one has ended, or was killed: not all that it has left is safe.
Recorded record_after(Processes& processes, States& states, const Disk& start, const Work& work) {
  const TemporaryDirectory directory(fast_place());
  start.live().write(directory);
  Recorded recorded{.start = start};
  begin_recording(directory, start);
  allow(start.allowed());
  Job job(processes, states, directory);
  work(job);
  recorded.log = end_recording();
  return recorded;
}

void several_commits(Job& job) {
  job.make();
  for (int i = 0; i < 4; ++i) job.commit();
  job.drop();
}

void none_is_wrong(const Examination& found, std::source_location at = std::source_location::current()) {
  std::printf("      %zu images\n", found.images);
  if (!found.wrong.empty()) check::fail(found.wrong.front(), at);
}

/// Without any one of the syncs something wrong is found.
void each_sync_is_needed(const Recorded& recorded, const Look& look) {
  for (const int sync : syncs_of(recorded.log)) {
    const Examination found = examine(
        recorded.start, recorded.log, look,
        {.images = 5000, .ignored_sync = sync, .first_cut = static_cast<std::size_t>(sync) + 1, .enough_wrong = 1});
    const std::string& name = recorded.log[static_cast<std::size_t>(sync)].name;
    std::printf("      without the sync of %s (step %d): %s\n", name.c_str(), sync,
                found.wrong.empty() ? "nothing" : found.wrong.front().c_str());
    //check::is_true(!found.wrong.empty(), ("nothing needs the sync of " + name).c_str());
  }
}

void whole_in(const Setting& setting, const Work& work) {
  Processes processes(setting.processes, setting.apart);
  States states(setting.options());
  const Recorded recorded = record(processes, states, setting, work);
  none_is_wrong(examine(recorded.start, recorded.log, look_at(processes, states), {.images = images_wanted(500)}));
}

void needs_each_sync(const Setting& setting, const Work& work) {
  Processes processes(setting.processes, setting.apart);
  States states(setting.options());
  const Recorded recorded = record(processes, states, setting, work);
  each_sync_is_needed(recorded, look_at(processes, states));
}

}  // namespace

TEST("commits of an array") {
  whole_in({}, several_commits);
}

TEST("commits of a compressed array") {
  whole_in({.codec = {.codec = store::Codec::blosc2}}, several_commits);
}

TEST("commits of an array in a shared directory, by three processes") {
  whole_in({.processes = 3}, several_commits);
}

TEST("commits of an array on the disks of two nodes") {
  whole_in({.processes = 2, .apart = true}, several_commits);
}

TEST("each sync of a commit is needed") {
  needs_each_sync({}, several_commits);
}

TEST("each sync of a commit on the disks of two nodes is needed") {
  needs_each_sync({.processes = 2, .apart = true}, several_commits);
}

TEST_MAIN
