/// official_steps: compares results of mneme with those of an official program.
#pragma once
#include "tests/support/golden.hpp"
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
namespace mneme::test {

/// A golden file of tools/research/official and its comparison. With MNEME_STEPS=FILE, both values of each number are
/// appended to the file as a line, for tools/research/official/compare.py.
class official_steps {
public:
  explicit official_steps(const std::string& name) : name_(name), record_(golden_record(name)) {
    INFO(name << " does not say where its numbers come from; expected repository, commit and made_by");
    REQUIRE(record_.contains("repository"));
    REQUIRE(record_.value("commit", "").size() == 40);
    REQUIRE(record_.value("made_by", "").starts_with("tools/research/official/"));
  }
  ~official_steps() {
    if (const char* const path = std::getenv("MNEME_STEPS")) {
      std::ofstream file(path, std::ios::app);
      file << lines_ << fmt::format("{}\tCPU seconds\t\t{:.3f}\t\n", name_, cpu_seconds() - begun_);
    }
  }
  official_steps(const official_steps&) = delete;
  official_steps& operator=(const official_steps&) = delete;

  [[nodiscard]] const nlohmann::json& operator[](const char* key) const { return record_[key]; }

  /// Compares a term of a loss with relative tolerance `bound`. @param least lower bound on the magnitude in the
  /// tolerance
  void term(const std::string& where, const nlohmann::json& official, double ours, double bound = 1e-6,
            double least = 1e-3) {
    const auto theirs = official.get<double>();
    const double apart = std::abs(ours - theirs) / std::max(std::abs(theirs), least);
    INFO(name_ << ", " << where << ": ours " << ours << ", theirs " << theirs);
    CHECK(apart <= bound);
    note(where, theirs, ours, apart);
  }
  /// Compares projection and norm of weights, with a tolerance of `bound` times the norm.
  void weights(const std::string& where, const std::string& name, const at::Tensor& ours,
               const nlohmann::json& official, double bound = 1e-5) {
    const auto flat = ours.to(at::kDouble).flatten().contiguous();
    const auto direction = at::tensor(formula(name + ".direction", flat.numel()), at::kDouble);
    const double theirs = official[1].get<double>(), length = flat.norm().item<double>();
    const double aside = std::abs(flat.dot(direction).item<double>() - official[0].get<double>());
    const double apart = std::max(aside, std::abs(length - theirs)) / std::max(theirs, 1e-12);
    INFO(name_ << ", " << where << ": length " << length << ", expected " << official.dump());
    CHECK(apart <= bound);
    note(where, theirs, length, apart);
  }
  /// Compares numbers of any shape: their distance must be at most `bound` times the norm of the official ones.
  void values(const std::string& where, const nlohmann::json& official, const at::Tensor& ours, double bound = 1e-6) {
    const auto flat = ours.to(at::kDouble).flatten();
    const auto theirs = at::tensor(official.get<std::vector<double>>(), at::kDouble);
    INFO(name_ << ", " << where << ": " << flat.numel() << " numbers, expected " << theirs.numel());
    REQUIRE(flat.numel() == theirs.numel());
    const double length = theirs.norm().item<double>();
    const double apart = (flat - theirs).norm().item<double>() / std::max(length, 1e-12);
    CHECK(apart <= bound);
    note(where, length, flat.norm().item<double>(), apart);
  }
  void equal(const std::string& where, const nlohmann::json& official, const nlohmann::json& ours) {
    INFO(name_ << ", " << where);
    CHECK(official == ours);
    lines_ += fmt::format("{}\t{}\t{}\t{}\t{}\n", name_, where, "selection", "selection", official == ours ? 0 : 1);
  }

private:
  void note(const std::string& where, double theirs, double ours, double apart) {
    lines_ += fmt::format("{}\t{}\t{:.9g}\t{:.9g}\t{:.2e}\n", name_, where, theirs, ours, apart);
  }
  static double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

  std::string name_, lines_;
  nlohmann::json record_;
  double begun_ = cpu_seconds();
};

} // namespace mneme::test
