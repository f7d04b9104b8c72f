#include "chem/common/basis.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <string>

#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

constexpr std::size_t atom_slots = 6, shell_slots = 8;
// Slots of libcint's shell table: ATOM_OF, ANG_OF, NPRIM_OF, NCTR_OF, PTR_EXP.
constexpr std::size_t atom_slot = 0, angular_slot = 1, primitive_slot = 2, contraction_slot = 3,
                      exponent_slot = 5;

// A larger shell would join components that are better screened separately.
constexpr int max_composite_size = 6;

}  // namespace

Basis::Basis(std::span<const int> atm, std::span<const int> bas, std::span<const double> env, bool cartesian,
             const Libcint& libcint)
    : libcint_(libcint),
      atm_(atm.begin(), atm.end()),
      bas_(bas.begin(), bas.end()),
      env_(env.begin(), env.end()),
      atoms_(int(atm.size() / atom_slots)) {
  if (atm.size() % atom_slots != 0 || bas.size() % shell_slots != 0 || bas.empty())
    throw Error(EINVAL, {.attempted = "basis", .detail = "atm and bas must be libcint's tables, not empty"});
  if (!libcint.int2e || !libcint.make_optimizer || !libcint.delete_optimizer)
    throw Error(EINVAL, {.attempted = "basis", .detail = "a libcint entry point is missing"});
  // Screening compares bounds: NaN would be left out without notice.
  if (const auto bad = std::ranges::find_if_not(env_, [](double x) { return std::isfinite(x); });
      bad != env_.end())
    throw Error(EINVAL,
                {.attempted = "basis",
                 .detail = "number " + std::to_string(bad - env_.begin()) + " of env is " +
                           std::to_string(*bad) + ": a coordinate, exponent or coefficient is not finite"});
  form_shells(cartesian);
  find_kinds();
  if (component_count() > 65535 || functions() > 65535)
    throw Error(EOVERFLOW, {.attempted = "basis",
                            .detail = std::to_string(functions()) + " functions in " +
                                      std::to_string(component_count()) +
                                      " shells; at most 65535 of each can be labelled"});

  void* optimizer = nullptr;
  libcint_.make_optimizer(&optimizer, atm_.data(), atoms_, bas_.data(), component_count(), env_.data());
  optimizer_ = {optimizer, [release = libcint.delete_optimizer](void* held) { release(&held); }};
  ask_work_size();
}

void Basis::form_shells(bool cartesian) {
  const auto slot = [&](std::size_t shell, std::size_t which) { return bas_[shell * shell_slots + which]; };
  const auto size_of = [&](std::size_t shell) {
    const int l = slot(shell, angular_slot);
    return (cartesian ? (l + 1) * (l + 2) / 2 : 2 * l + 1) * slot(shell, contraction_slot);
  };
  const auto same_reach = [&](std::size_t a, std::size_t b) {
    const int count = slot(a, primitive_slot);
    const auto exponents = [&](std::size_t shell) { return env_.begin() + slot(shell, exponent_slot); };
    return slot(a, atom_slot) == slot(b, atom_slot) && count == slot(b, primitive_slot) &&
           std::equal(exponents(a), exponents(a) + count, exponents(b));
  };

  const std::size_t count = bas_.size() / shell_slots;
  std::vector<int> first_original{0};
  for (std::size_t shell = 0; shell < count; ++shell)
    first_original.push_back(first_original.back() + size_of(shell));
  std::vector<bool> taken(count, false);
  first_.push_back(0);
  first_component_.push_back(0);
  for (std::size_t shell = 0; shell < count; ++shell) {
    if (taken[shell]) continue;
    int size = 0;
    // The shells of an atom are consecutive.
    for (std::size_t other = shell; other < count && slot(other, atom_slot) == slot(shell, atom_slot);
         ++other) {
      const bool fits =
          other == shell || (same_reach(shell, other) && size + size_of(other) <= max_composite_size);
      if (taken[other] || !fits) continue;
      taken[other] = true;
      components_.push_back({int(other), size, size_of(other)});
      for (int f = 0; f < size_of(other); ++f) original_.push_back(first_original[other] + f);
      size += size_of(other);
    }
    first_.push_back(first_.back() + size);
    first_component_.push_back(int(components_.size()));
    largest_ = std::max(largest_, size);
  }
}

void Basis::find_kinds() {
  std::map<std::vector<int>, int> numbers;
  for (int shell = 0; shell < shells(); ++shell) {
    std::vector<int> signature;
    for (const auto& component : components(shell))
      for (auto which : {angular_slot, primitive_slot, contraction_slot})
        signature.push_back(bas_[std::size_t(component.number) * shell_slots + which]);
    kind_.push_back(numbers.try_emplace(std::move(signature), int(numbers.size())).first->second);
  }
  kinds_ = int(numbers.size());
}

void Basis::ask_work_size() {
  for (int shell = 0; shell < component_count(); ++shell) {
    int quartet[4] = {shell, shell, shell, shell};
    const int need = libcint_.int2e(nullptr, nullptr, quartet, atm_.data(), atoms_, bas_.data(),
                                    component_count(), env_.data(), optimizer_.get(), nullptr);
    work_size_ = std::max(work_size_, std::size_t(need));
  }
}

}  // namespace outcore::chem
