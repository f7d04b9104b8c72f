#include "transport/host.hpp"

#include <unistd.h>

#include <fstream>

namespace outcore::transport {

std::string host_name() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return std::string(name) + "/" + boot.substr(0, 8);
}

}  // namespace outcore::transport
