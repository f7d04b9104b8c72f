// Control groups and memory limits, read from files like those of the kernel under another root directory.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/control_groups.hpp"
#include "base/memory_limits.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using check::equal, check::is_true;
using std::filesystem::path;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// A machine of 64 GiB, of which 40 are available, with a process of 300 MiB (100 MiB of data).
class Machine {
 public:
  Machine() {
    write("proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   41943040 kB\n");
    write("proc/self/status", "Name:\tx\nVmSize:\t  307200 kB\nVmRSS:\t   51200 kB\nVmData:\t  102400 kB\n");
    write("proc/self/cgroup", "");
    write("proc/self/mountinfo", "22 27 0:21 / /proc rw,relatime - proc proc rw\n");
    for (const char* name : {"SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"}) unsetenv(name);
  }

  void write(const path& name, const std::string& text) const {
    std::filesystem::create_directories((root() / name).parent_path());
    std::ofstream(root() / name) << text;
  }
  [[nodiscard]] path root() const { return directory_.path(); }

  [[nodiscard]] std::vector<MemoryLimit> limits() const { return memory_limits(root()); }
  /// The limit with the least memory left.
  [[nodiscard]] MemoryLimit least() const {
    const auto all = limits();
    return *std::min_element(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.left_bytes < b.left_bytes; });
  }

 private:
  TemporaryDirectory directory_;
};

std::string mount(const std::string& group, const std::string& place, const std::string& kind,
                  const std::string& options) {
  return "30 23 0:28 " + group + " " + place + " rw,nosuid shared:9 - " + kind + " cgroup rw," + options +
         "\n";
}

}  // namespace

TEST("machine without limits") {
  const Machine machine;
  equal(machine.limits().size(), 1u);
  equal(machine.least().left_bytes, 40960 * mib);
  equal(machine.least().limit_bytes, 65536 * mib);
  is_true(!machine.least().hard);
}

TEST("max of version 2 less what cannot be dropped") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/job\n");
  machine.write("proc/self/mountinfo", mount("/", "/sys/fs/cgroup", "cgroup2", "nsdelegate"));
  machine.write("sys/fs/cgroup/job/memory.max", "1048576000\n");
  machine.write("sys/fs/cgroup/job/memory.high", "max\n");
  machine.write("sys/fs/cgroup/job/memory.current", "524288000\n");
  machine.write("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 104857600\nactive_file 7\n");
  const MemoryLimit least = machine.least();
  equal(least.limit_bytes, 1000 * mib);
  equal(least.left_bytes, 600 * mib);
  is_true(least.hard && least.shared);
  equal(least.name, "memory.max");
  equal(least.source, (machine.root() / "sys/fs/cgroup/job/memory.max").string());
}

TEST("high of a group further out") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/a/b/c\n");
  machine.write("proc/self/mountinfo", mount("/", "/sys/fs/cgroup", "cgroup2", "nsdelegate"));
  machine.write("sys/fs/cgroup/a/b/c/memory.max", "max\n");
  machine.write("sys/fs/cgroup/a/memory.high", std::to_string(700 * mib));
  equal(machine.least().limit_bytes, 700 * mib);
  equal(machine.least().name, "memory.high");
}

TEST("place that is not the usual one with a blank") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/job\n");
  machine.write("proc/self/mountinfo", mount("/", "/my\\040groups", "cgroup2", "x"));
  machine.write("my groups/job/memory.max", std::to_string(5 * mib));
  equal(machine.least().limit_bytes, 5 * mib);
}

TEST("group of a container is what is mounted") {
  const Machine machine;
  machine.write("proc/self/cgroup", "9:memory:/docker/4711/inner\n");
  machine.write("proc/self/mountinfo", mount("/docker/4711", "/sys/fs/cgroup/memory", "cgroup", "memory"));
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(300 * mib));
  machine.write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(100 * mib));
  machine.write("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 1048576\n");
  equal(machine.least().limit_bytes, 300 * mib);
  equal(machine.least().left_bytes, 201 * mib);
}

TEST("group outside of the name space is limited by what is seen") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/../other\n");
  machine.write("proc/self/mountinfo", mount("/", "/sys/fs/cgroup", "cgroup2", "x"));
  machine.write("sys/fs/cgroup/memory.max", std::to_string(200 * mib));
  equal(machine.least().limit_bytes, 200 * mib);
}

TEST("controllers of version 1 that are mounted together") {
  for (const char* controllers : {"cpuset,memory", "memory,hugetlb", "memory"}) {
    const Machine machine;
    machine.write("proc/self/cgroup", "5:freezer:/no\n4:" + std::string(controllers) + ":/slurm/job_1\n");
    machine.write("proc/self/mountinfo", mount("/", "/cgroup/any", "cgroup", controllers) +
                                             mount("/", "/cgroup/freezer", "cgroup", "freezer"));
    machine.write("cgroup/any/slurm/memory.limit_in_bytes", std::to_string(400 * mib));
    machine.write("cgroup/freezer/slurm/job_1/memory.limit_in_bytes", "1\n");  // not of this controller
    machine.write("cgroup/any/slurm/job_1/memory.limit_in_bytes", "9223372036854771712\n");
    equal(machine.least().limit_bytes, 400 * mib);
  }
}

TEST("limit of groups around that cannot be seen") {
  const Machine machine;
  machine.write("proc/self/cgroup", "4:memory:/\n");
  machine.write("proc/self/mountinfo", mount("/", "/sys/fs/cgroup/memory", "cgroup", "memory"));
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("sys/fs/cgroup/memory/memory.stat",
                "cache 1\nhierarchical_memory_limit 157286400\nhierarchical_memsw_limit 3\n");
  equal(machine.least().limit_bytes, 150 * mib);
  equal(machine.least().name, "hierarchical_memory_limit");
}

TEST("both versions at a time") {
  const Machine machine;
  machine.write("proc/self/cgroup", "4:memory:/x\n0::/y\n");
  machine.write("proc/self/mountinfo", mount("/", "/c/memory", "cgroup", "memory") +
                                           mount("/", "/c/unified", "cgroup2", "nsdelegate"));
  machine.write("c/memory/x/memory.limit_in_bytes", std::to_string(90 * mib));
  machine.write("c/unified/y/memory.max", std::to_string(80 * mib));
  equal(machine.least().limit_bytes, 80 * mib);
}

TEST("full group has nothing left") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/\n");
  machine.write("proc/self/mountinfo", mount("/", "/sys/fs/cgroup", "cgroup2", "x"));
  machine.write("sys/fs/cgroup/memory.max", "1000\n");
  machine.write("sys/fs/cgroup/memory.current", "2000\n");
  equal(machine.least().left_bytes, 0);
}

TEST("address space less what is mapped is of the process alone") {
  const Machine machine;
  machine.write("proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units     \n"
                "Max data size             209715200            unlimited            bytes     \n"
                "Max address space         1048576000           unlimited            bytes     \n");
  const auto all = machine.limits();
  equal(all.size(), 3u);
  for (const MemoryLimit& each : all)
    if (each.name == "ulimit -v (RLIMIT_AS)") {
      equal(each.limit_bytes, 1000 * mib);
      equal(each.left_bytes, 700 * mib);
      equal(each.limit_of_one(4), 700 * mib);
    }
  equal(machine.least().name, "ulimit -d (RLIMIT_DATA)");
  equal(machine.least().left_bytes, 100 * mib);
  is_true(!machine.least().shared);
}

TEST("unlimited process") {
  const Machine machine;
  machine.write("proc/self/limits",
                "Max address space         unlimited            unlimited            bytes     \n");
  equal(machine.limits().size(), 1u);
}

TEST("memory that slurm gives") {
  const Machine machine;
  setenv("SLURM_MEM_PER_NODE", "0", 1);  // all of it
  equal(machine.limits().size(), 1u);
  setenv("SLURM_MEM_PER_NODE", "2000", 1);
  equal(machine.least().limit_bytes, 2000 * mib);
  equal(machine.least().limit_of_one(4), 500 * mib);
  unsetenv("SLURM_MEM_PER_NODE");
  setenv("SLURM_MEM_PER_CPU", "300", 1);
  setenv("SLURM_CPUS_ON_NODE", "4", 1);
  equal(machine.least().limit_bytes, 1200 * mib);
  equal(machine.least().left_bytes, 1150 * mib);
  unsetenv("SLURM_MEM_PER_CPU");
  unsetenv("SLURM_CPUS_ON_NODE");
}

TEST("own groups are there") {
  for (const ControlGroup& group : control_groups("memory"))
    is_true(std::filesystem::is_directory(group.directory));
  is_true(!memory_limits().empty());
}

TEST_MAIN
