#pragma once

#include <string>
#include <vector>

#include "base/sibling.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::transport {

/// Name of the machine of this process, made unique, as machines may have the same name. Determined once.
/// Until then it may throw Error(EMFILE, ENFILE, ENOMEM).
[[nodiscard]] OUTCORE_SIBLING std::string host_name();

/// Whether a process of this host (by its number in the name space of this process) is alive. Zombies are
/// not, but a process without free file descriptors cannot tell.
[[nodiscard]] OUTCORE_SIBLING bool process_exists(int pid);

/// Each process passes a name. The result has a number for each process, in order of rank; equal names have
/// the same number (their first 255 bytes count). Names are numbered in order of appearance. Collective.
[[nodiscard]] std::vector<int> numbers_of_names(Transport& transport, const std::string& name);

}  // namespace outcore::transport
