/// known_forms: which forms answers of a kind have, learnt from answers that this process has computed itself.
#pragma once
#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>
namespace mneme {

/// An answer has a kind, which has to be known, and sizes, which may differ from client to client: it has a known form
/// where its sizes are those of an example, or where enough examples differ and its own lie between theirs and are
/// equal where theirs are.
template <class Kind>
class known_forms {
public:
  using sizes = std::vector<double>;
  static constexpr std::size_t examples_max = 3; ///< From so many on sizes count as free between the examples.

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
      return; // kinds tell numbers of sizes apart
    if (known.examples.size() < examples_max &&
        std::find(known.examples.begin(), known.examples.end(), values) == known.examples.end())
      known.examples.push_back(values);
    auto equal_to = known.equal_to;
    for (std::size_t i = 0; i < values.size(); ++i) {
      known.low[i] = std::min(known.low[i], values[i]);
      known.high[i] = std::max(known.high[i], values[i]);
      equal_to[i] = i; // the first that was equal in all examples
      for (std::size_t j = 0; j < i && equal_to[i] == i; ++j)
        if (known.equal_to[j] == known.equal_to[i] && values[j] == values[i])
          equal_to[i] = j;
    }
    known.equal_to = std::move(equal_to);
  }

private:
  struct known_kind {
    std::vector<sizes> examples{}; // that differ, examples_max at most
    sizes low{}, high{};
    std::vector<std::size_t> equal_to{}; // the first size that each has always been equal to
  };
  static std::size_t place_of(const sizes& values, double value) {
    return static_cast<std::size_t>(std::find(values.begin(), values.end(), value) - values.begin());
  }

  std::map<Kind, known_kind> learnt_;
};

} // namespace mneme
