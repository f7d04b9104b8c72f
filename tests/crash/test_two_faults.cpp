// A job ends at any moment, another job goes on with what this left, and then the power fails.
#include <cstdio>
#include <string>

#include "crash/arrays.hpp"
#include "support/check.hpp"

using namespace crash;  // NOLINT

namespace {

constexpr std::size_t usual_images = 1000;  // of each scenario; OUTCORE_CRASH_IMAGES for the long form

void make_and_commit(Job& job) {
  job.make();
  for (int i = 0; i < 3; ++i) job.commit();
  job.drop();
}

void replace(Job& job) {
  job.make();
  job.commit();
  job.drop();
  job.make(true);
  job.commit();
  job.remove();
}

/// The job that follows; it goes on with an array if there is one.
void go_on(Job& job) {
  if (job.there())
    job.open();
  else
    job.make(true);
  for (int i = 0; i < 2; ++i) job.commit();
  job.drop();
}

void open_and_remove(Job& job) {
  if (!job.there()) return;
  job.open();
  job.remove();
}

void replace_what_is_there(Job& job) {
  job.make(true);
  for (int i = 0; i < 2; ++i) job.commit();
  job.drop();
}

/// The faults found, in `images` images in all, when a job is killed after any of its steps and the next job
/// works.
Examination killed_and_next(const Setting& setting, const Work& first, const Work& next, std::size_t images) {
  Processes processes(setting.processes, setting.apart);
  States states(setting.options());
  const Recorded killed = record(processes, states, setting, first);
  const std::size_t steps = killed.log.size();
  Examination all;
  for (std::size_t cut = 1; cut <= steps && all.wrong.empty(); ++cut) {
    States more = states;
    const Recorded then = record_after(processes, more, killed.at(cut), next);
    const std::size_t left = images > all.images ? images - all.images : 0;
    const Examination found = examine(then.start, then.log, look_at(processes, more),
                                      {.images = left / (steps + 1 - cut) + 1, .seed = cut});
    all.images += found.images;
    for (const std::string& problem : found.wrong)
      all.wrong.push_back("killed after step " + std::to_string(cut) + ": " + problem);
  }
  return all;
}

void none_is_wrong(const Examination& found, std::source_location at = std::source_location::current()) {
  std::printf("      %zu images\n", found.images);
  if (!found.wrong.empty()) check::fail(found.wrong.front(), at);
}

}  // namespace

TEST("the next job, and then a loss of power, after a job was killed") {
  none_is_wrong(killed_and_next({}, make_and_commit, go_on, images_wanted(usual_images)));
}

TEST("the same on the disks of two nodes") {
  none_is_wrong(
      killed_and_next({.processes = 2, .apart = true}, make_and_commit, go_on, images_wanted(usual_images)));
}

TEST("the same where the next job removes the array") {
  none_is_wrong(killed_and_next({}, make_and_commit, open_and_remove, images_wanted(usual_images / 2)));
  none_is_wrong(killed_and_next({.processes = 2, .apart = true}, make_and_commit, open_and_remove,
                                images_wanted(usual_images / 2)));
}

TEST("the same where the job that was killed replaces and removes an array") {
  for (const Setting& setting : {Setting{}, Setting{.processes = 2, .apart = true}})
    none_is_wrong(killed_and_next(setting, replace, go_on, images_wanted(usual_images / 2)));
}

TEST("the same where the next job replaces what the first one has made or replaced") {
  for (const Setting& setting : {Setting{}, Setting{.processes = 2, .apart = true}})
    for (const Work& first : {Work(make_and_commit), Work(replace)})
      none_is_wrong(killed_and_next(setting, first, replace_what_is_there, images_wanted(usual_images / 4)));
}

TEST("a job that is killed between the rename of a manifest and its sync leaves the sync to the next one") {
  Processes processes(1);
  States states({.path = "array"});
  const Recorded killed = record(processes, states, {}, make_and_commit);
  std::size_t cut = killed.log.size();
  while (killed.log[cut - 1].kind != Operation::Kind::rename) --cut;  // the last commit was not acknowledged
  const Recorded then = record_after(processes, states, killed.at(cut), go_on);
  const std::vector<Sync> syncs = syncs_of(then.log);
  check::equal(syncs.front().name, "array");
  std::set<std::string> missing{syncs.front().name};
  find_needed(then.start, then.log, look_at(processes, states, false), usual_images, missing);
  check::is_true(missing.empty(), "nothing needs what opening the array makes durable");
}

TEST("each sync of opening an array on the disks of two nodes to write is needed") {
  const Setting setting{.processes = 2, .apart = true};
  Processes processes(2, true);
  std::set<std::string> missing{"disk0/array with what was made",  // a mark, for who sees the directory
                                "disk1/array",
                                "disk0/array/manifest.new",
                                "disk1/array/manifest.new",
                                "disk0/array after manifest was renamed",
                                "disk1/array after manifest was renamed"};
  constexpr int max_attempts = 20;  // which node is faster decides what is needed
  for (int attempt = 0; attempt < max_attempts && !missing.empty(); ++attempt) {
    States states(setting.options(), static_cast<std::uint64_t>(attempt));
    const Recorded killed = record(processes, states, setting, make_and_commit);
    for (std::size_t cut = killed.log.size(); cut > killed.log.size() * 2 / 3 && !missing.empty(); --cut) {
      States more = states;
      const Recorded then = record_after(processes, more, killed.at(cut), open_and_remove);
      std::size_t opened = 1;  // what comes after it has the same names
      while (then.log[opened].kind != Operation::Kind::allow) ++opened;
      find_needed(then.start, then.log, look_at(processes, more, false), 100, missing, opened);
    }
  }
  if (!missing.empty())
    check::fail("nothing needs the sync of " + *missing.begin(), std::source_location::current());
}

TEST("after a loss of power the next job, and another loss of power") {
  for (const Setting& setting : {Setting{}, Setting{.processes = 2, .apart = true}}) {
    Processes processes(setting.processes, setting.apart);
    States states(setting.options());
    const Recorded lost = record(processes, states, setting, make_and_commit);
    std::mt19937_64 random(1);
    const std::size_t wanted = images_wanted(usual_images), each = 10;
    std::size_t images = 0;
    while (images < wanted) {
      const Disk before = lost.at(1 + random() % lost.log.size());
      const TemporaryDirectory directory(fast_place());
      before.image(random).write(directory);
      Disk start(directory);
      start.apply({.kind = Operation::Kind::allow, .states = before.allowed()});
      States more = states;
      const Recorded then = record_after(processes, more, start, go_on);
      const Examination found =
          examine(then.start, then.log, look_at(processes, more), {.images = each, .seed = random()});
      if (!found.wrong.empty()) check::fail(found.wrong.front(), std::source_location::current());
      images += found.images;
    }
    std::printf("      %zu images\n", images);
  }
}

TEST_MAIN
