#include "chem/mrci/kernel.hpp"

namespace outcore::chem::mrci {

/// Energies of one internal determinant, and of orbitals in its field.
class Kernel::Levels {
 public:
  Levels(const Kernel& kernel, const Record& record) : kernel_(kernel), n_(kernel.space_->orbitals()) {
    const int u = kernel.space_->internals();
    for (int p = 0; p < u; ++p) {
      if (record.alpha >> p & 1) occupied_[0].push_back(p);
      if (record.beta >> p & 1) occupied_[1].push_back(p);
    }
    energy = kernel.constant_;
    for (int spin = 0; spin < 2; ++spin)
      for (int p : occupied_[std::size_t(spin)]) energy += (level(p) + of(spin, p)) / 2;
    for (int c = u; c < n_; ++c) {
      alpha.push_back(of(0, c));
      beta.push_back(of(1, c));
    }
  }

  double energy;
  std::vector<double> alpha, beta;  ///< of external orbitals

 private:
  [[nodiscard]] double level(int p) const { return kernel_.one_[std::size_t(p) * std::size_t(n_ + 1)]; }
  /// Energy of an electron of a spin in orbital p: one-electron part, and the field of the internal
  /// electrons.
  [[nodiscard]] double of(int spin, int p) const {
    double sum = level(p);
    for (int other = 0; other < 2; ++other)
      for (int q : occupied_[std::size_t(other)]) {
        const auto at = std::size_t(p) * std::size_t(n_) + std::size_t(q);
        sum += kernel_.coulomb_[at] - (spin == other ? kernel_.exchange_[at] : 0.0);
      }
    return sum;
  }

  const Kernel& kernel_;
  int n_;
  std::array<std::vector<int>, 2> occupied_;
};

void Kernel::diagonal(std::int64_t first, std::int64_t last, double* elements) const {
  const Externals& externals = space_->externals();
  const int u = space_->internals(), n = space_->orbitals();
  for (std::int64_t i = first; i < last; ++i) {
    const Record& record = space_->record(i);
    const Levels levels(*this, record);
    const auto pair = [&](int c, int d, bool same) {
      const auto at = std::size_t(u + c) * std::size_t(n) + std::size_t(u + d);
      const auto& first_level = record.kind == External::beta_beta ? levels.beta : levels.alpha;
      const auto& second_level = record.kind == External::alpha_alpha ? levels.alpha : levels.beta;
      return levels.energy + first_level[std::size_t(c)] + second_level[std::size_t(d)] + coulomb_[at] -
             (same ? exchange_[at] : 0.0);
    };
    switch (record.kind) {
      case External::none:
        *elements++ = levels.energy;
        break;
      case External::alpha:
      case External::beta: {
        const auto& of = record.kind == External::alpha ? levels.alpha : levels.beta;
        for (int c = 0; c < externals.count(record.irrep); ++c)
          *elements++ = levels.energy + of[std::size_t(externals.first(record.irrep) + c)];
        break;
      }
      default: {
        const bool same = record.kind != External::alpha_beta;
        for (int g = 0; g < externals.groups(); ++g) {
          const int h = g ^ record.irrep;
          if (same && h > g) continue;
          for (int c = 0; c < externals.count(g); ++c)
            for (int d = 0; d < (same && g == h ? c : externals.count(h)); ++d)
              *elements++ = pair(externals.first(g) + c, externals.first(h) + d, same);
        }
      }
    }
  }
}

}  // namespace outcore::chem::mrci
