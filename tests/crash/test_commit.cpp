// The power fails while an array is made, committed, replaced and removed: what is found is the old state or
// the new one, and every sync is needed for that.
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

#include "crash/arrays.hpp"
#include "device/directory.hpp"
#include "support/check.hpp"

using namespace crash;  // NOLINT

namespace {

constexpr std::size_t usual_images = 300;  // of each scenario; OUTCORE_CRASH_IMAGES for the long form

void commits(Job& job) {
  job.make();
  for (int i = 0; i < 4; ++i) job.commit();
  job.drop();
}

void commits_beside_readers(Job& job) {
  job.make();
  for (int i = 0; i < 5; ++i) {
    job.commit();
    job.read();
  }
  job.drop();
  job.open();
  for (int i = 0; i < 2; ++i) job.commit();
  job.drop();
}

void commit_and_remove(Job& job) {
  job.make();
  for (int i = 0; i < 2; ++i) job.commit();
  job.remove();
}

void make_and_commit(Job& job) {
  job.make();
  for (int i = 0; i < 2; ++i) job.commit();
  job.drop();
}

/// Drops the first new array without a commit; later ones replace the array.
void replace(Job& job) {
  make_and_commit(job);
  job.make(true);
  job.drop();
  for (int array = 0; array < 2; ++array) {
    job.make(true);
    for (int i = 0; i < 2; ++i) job.commit();
    job.drop();
  }
  job.open();
  job.commit();
  job.drop();
}

void replace_beside_readers(Job& job) {
  job.make();
  job.commit();
  for (int array = 0; array < 2; ++array) {
    job.read();
    job.let_go();
    job.make(true);
    job.commit();
  }
  job.read();
  job.commit();
  job.drop();
}

void replace_and_remove(Job& job) {
  job.make(true);
  job.commit();
  job.remove();
}

void none_is_wrong(const Examination& found, std::source_location at = std::source_location::current()) {
  std::printf("      %zu images\n", found.images);
  if (!found.wrong.empty()) check::fail(found.wrong.front(), at);
}

void whole_in(const Setting& setting, const Work& work,
              std::source_location at = std::source_location::current()) {
  Processes processes(setting.processes, setting.apart);
  States states(setting.options());
  const Recorded recorded = record(processes, states, setting, work);
  none_is_wrong(examine(recorded.start, recorded.log, look_at(processes, states),
                        {.images = images_wanted(usual_images)}),
                at);
}

/// Checks that something wrong is found without any one of the syncs that `work` makes in directories of
/// arrays, and next to them. Work goes on where `before` has ended, whose syncs are not examined. On two
/// nodes the result depends on which is faster, hence several attempts.
void needs_each_sync(const Setting& setting, const Work& work, std::size_t least, const Work& before = {}) {
  constexpr int max_attempts = 20;
  constexpr std::size_t images = 400;
  Processes processes(setting.processes, setting.apart);
  std::set<std::string> missing;
  for (int attempt = 0; attempt == 0 || (attempt < max_attempts && !missing.empty()); ++attempt) {
    States states(setting.options(), static_cast<std::uint64_t>(attempt));
    const Recorded recorded =
        before ? record_after(processes, states, record(processes, states, setting, before).end(), work)
               : record(processes, states, setting, work);
    if (attempt == 0) {
      for (const Sync& each : syncs_of(recorded.log))
        if (!before || each.name.find("array") != std::string::npos) missing.insert(each.name);
      check::is_true(missing.size() >= least, "there are too few syncs");
    }
    find_needed(recorded.start, recorded.log, look_at(processes, states, false), images, missing);
  }
  if (!missing.empty())
    check::fail("nothing needs the sync of " + *missing.begin(), std::source_location::current());
}

}  // namespace

TEST("commits of an array") {
  whole_in({}, commits);
}

TEST("commits of a compressed array") {
  whole_in({.codec = {.codec = store::Codec::blosc2}}, commits);
}

TEST("commits of an array in a shared directory, by three processes") {
  whole_in({.processes = 3}, commits);
}

TEST("commits of an array on the disks of two nodes") {
  whole_in({.processes = 2, .apart = true}, commits);
}

TEST("commits of an array while others read states before them") {
  whole_in({}, commits_beside_readers);
}

TEST("commits of an array on the disks of two nodes while others read states before them") {
  whole_in({.processes = 2, .apart = true}, commits_beside_readers);
}

TEST("an array is committed and removed") {
  whole_in({}, commit_and_remove);
}

TEST("an array on the disks of two nodes is committed and removed") {
  whole_in({.processes = 2, .apart = true}, commit_and_remove);
}

TEST("an array takes the place of another one") {
  whole_in({}, replace);
}

TEST("an array on the disks of two nodes takes the place of another one") {
  whole_in({.processes = 2, .apart = true}, replace);
}

TEST("an array in a shared directory takes the place of another one, by three processes") {
  whole_in({.processes = 3}, replace);
}

TEST("arrays take the place of those that others read") {
  whole_in({}, replace_beside_readers);
  whole_in({.processes = 2, .apart = true}, replace_beside_readers);
}

TEST(
    "what was made in the directory of a node before a commit is there after it, also without a part of the "
    "array") {
  const Setting setting{.processes = 2, .apart = true, .group = States::chunks};
  Processes processes(setting.processes, setting.apart);
  States states(setting.options());
  const std::string made = "disk1/array/made";
  const TemporaryDirectory directory(fast_place());
  setting.prepare(directory);
  const Disk start{std::string(directory)};
  begin_recording(directory, start);
  Job job(processes, states, directory, any_of(0));
  job.make();
  job.commit();
  device::Directory::make(directory / made);
  job.commit();
  const Log log = end_recording();
  job.drop();
  const Look look = [&](const std::string& image, std::uint64_t) -> std::string {
    int state = 0;
    processes.run([&](World& world) {
      const int found = states.found(world, image);
      if (world.rank() == 0) state = found;
    });
    return state < 2 || std::filesystem::exists(image + "/" + made) ? "" : made + " is not there";
  };
  none_is_wrong(examine(start, log, look, {.images = images_wanted(usual_images)}));
}

TEST("each sync of a commit, and of removing an array, is needed") {
  needs_each_sync({}, commit_and_remove, 7);
}

TEST("each sync of a commit on the disks of two nodes is needed") {
  needs_each_sync({.processes = 2, .apart = true}, commit_and_remove, 14);
}

TEST("each sync of an array that takes the place of another one is needed") {
  needs_each_sync({}, replace_and_remove, 6, make_and_commit);
}

TEST("each sync of an array on the disks of two nodes that takes the place of another one is needed") {
  needs_each_sync({.processes = 2, .apart = true}, replace_and_remove, 12, make_and_commit);
}

TEST("an array that takes the place of one whose name is not on the disk yet is found under it") {
  Processes processes(1);
  States states(Setting{}.options());
  const Recorded made = record(processes, states, {}, make_and_commit);
  Recorded copied{.start = made.start};  // as programs do it that copy directories
  for (const Operation& each : made.log)
    if (each.kind != Operation::Kind::sync || each.name != ".") copied.log.push_back(each);
  Disk start = copied.end();
  start.apply({.kind = Operation::Kind::allow, .states = start.allowed() | any_of(0)});
  const Recorded then = record_after(processes, states, start, [](Job& job) {
    job.make(true);
    job.commit();
    job.drop();
  });
  none_is_wrong(examine(then.start, then.log, look_at(processes, states, false),
                        {.images = images_wanted(usual_images)}));
  std::set<std::string> missing{"."};
  find_needed(then.start, then.log, look_at(processes, states, false), usual_images, missing);
  check::is_true(missing.empty(), "nothing needs the sync of the directory that has it");
}

TEST_MAIN
