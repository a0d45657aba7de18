/// known_forms: known shapes of answers, from examples that this process has computed.
#pragma once
#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>
namespace mneme {

/// An answer has a kind, which must be known, and sizes, which may differ between clients. Its shape is known if its
/// sizes equal those of an example, or if enough examples differ, its sizes lie between theirs, and sizes that are
/// equal in all examples are equal in it.
template <class Kind>
class known_forms {
public:
  using sizes = std::vector<double>;
  static constexpr std::size_t examples_max = 3; ///< From this number on, sizes may vary between those of the examples.

  [[nodiscard]] bool knows(const Kind& kind, const sizes& values) const {
    const auto entry = learnt_.find(kind);
    if (entry == learnt_.end() || entry->second.low.size() != values.size())
      return false;
    const auto& known = entry->second;
    if (std::find(known.examples.begin(), known.examples.end(), values) != known.examples.end())
      return true;
    if (known.examples.size() < examples_max)
      return false;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] < known.low[i] || values[i] > known.high[i] || values[i] != values[known.equal_to[i]])
        return false;
    return true;
  }

  void learn(const Kind& kind, const sizes& values) {
    auto& known = learnt_[kind];
    if (known.examples.empty()) {
      known = {.examples = {values}, .low = values, .high = values, .equal_to = {}};
      for (const auto value : values)
        known.equal_to.push_back(place_of(values, value));
      return;
    }
    if (known.low.size() != values.size())
      return; // the kind fixes the number of sizes
    if (known.examples.size() < examples_max &&
        std::find(known.examples.begin(), known.examples.end(), values) == known.examples.end())
      known.examples.push_back(values);
    auto equal_to = known.equal_to;
    for (std::size_t i = 0; i < values.size(); ++i) {
      known.low[i] = std::min(known.low[i], values[i]);
      known.high[i] = std::max(known.high[i], values[i]);
      equal_to[i] = i; // the first size that was equal in all examples
      for (std::size_t j = 0; j < i && equal_to[i] == i; ++j)
        if (known.equal_to[j] == known.equal_to[i] && values[j] == values[i])
          equal_to[i] = j;
    }
    known.equal_to = std::move(equal_to);
  }

private:
  struct known_kind {
    std::vector<sizes> examples{}; // different ones, at most examples_max
    sizes low{}, high{};
    std::vector<std::size_t> equal_to{}; // by size: the first size that has always been equal to it
  };
  static std::size_t place_of(const sizes& values, double value) {
    return static_cast<std::size_t>(std::find(values.begin(), values.end(), value) - values.begin());
  }

  std::map<Kind, known_kind> learnt_;
};

} // namespace mneme
