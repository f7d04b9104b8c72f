#include "transport/host.hpp"

#include <unistd.h>

#include <fstream>
#include <map>
#include <span>

namespace outcore::transport {

std::string host_name() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return std::string(name) + "/" + boot.substr(0, 8);
}

bool process_exists(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  const auto name_end = line.rfind(')');  // "17 (name) S ..."
  const char state = name_end + 2 < line.size() ? line[name_end + 2] : 'X';
  return state != 'Z' && state != 'X';
}

std::vector<int> numbers_of_names(Transport& transport, const std::string& name) {
  struct Name {
    char text[256];
  };
  Name mine{};
  name.copy(mine.text, sizeof mine.text - 1);
  std::vector<Name> names(static_cast<std::size_t>(transport.size()));
  transport.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(names)));
  std::vector<int> result;
  std::map<std::string, int> numbers;
  for (const Name& each : names)
    result.push_back(numbers.emplace(each.text, static_cast<int>(numbers.size())).first->second);
  return result;
}

}  // namespace outcore::transport
