#include "runtime/base/check.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/data/task_stream.hpp"
#include <algorithm>
#include <array>
#include <numeric>
namespace mneme {
namespace {

/// CIFAR-100 class order of iCaRL (Rebuffi et al. 2017), as published in later code bases.
constexpr std::array<std::int64_t, 100> icarl87{
    87, 0,  52, 58, 44, 91, 68, 97, 51, 15, 94, 92, 10, 72, 49, 78, 61, 14, 8,  86, 84, 96, 18, 24, 32,
    45, 88, 11, 4,  67, 69, 66, 77, 47, 79, 93, 29, 50, 57, 83, 17, 81, 41, 12, 37, 59, 25, 20, 80, 73,
    1,  28, 6,  46, 62, 82, 53, 9,  31, 75, 38, 63, 33, 74, 27, 22, 36, 3,  16, 21, 60, 19, 70, 90, 89,
    43, 5,  42, 65, 76, 40, 30, 23, 85, 2,  95, 56, 48, 71, 64, 98, 13, 99, 7,  34, 55, 54, 26, 35, 39};

/// MT19937 (Matsumoto and Nishimura 1998), seeded like in its version of 2002. numpy.random.seed(n) uses this
/// generator.
class mersenne_twister {
public:
  explicit mersenne_twister(std::uint32_t seed) {
    state_[0] = seed;
    for (std::uint32_t i = 1; i < size; ++i)
      state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  std::uint32_t next() {
    if (used_ == size)
      twist();
    std::uint32_t word = state_[used_++];
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680U;
    word ^= (word << 15) & 0xefc60000U;
    return word ^ (word >> 18);
  }

private:
  void twist() {
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t joined = (state_[i] & 0x80000000U) | (state_[(i + 1) % size] & 0x7fffffffU);
      state_[i] = state_[(i + 397) % size] ^ (joined >> 1) ^ (joined & 1 ? 0x9908b0dfU : 0);
    }
    used_ = 0;
  }

  static constexpr std::uint32_t size = 624;
  std::array<std::uint32_t, size> state_{};
  std::uint32_t used_ = size;
};

std::vector<std::int64_t> natural_order(std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

expected<std::vector<std::int64_t>> named_order(const scenario& from, const std::string& name, std::int64_t classes) {
  auto order = natural_order(classes);
  if (name == "natural")
    return order;
  if (name == "np1993")
    return legacy_numpy_permutation(1993, classes);
  if (name == "seeded") {
    rng_stream stream(key_for({.seed = from.data_seed()}, purpose::class_order));
    stream.shuffle(std::span(order));
    return order;
  }
  MNEME_CHECK(name == "icarl87", name); // reading the key accepts no other word
  if (classes != std::ssize(icarl87))
    return failed(from.where("tasks.class_order"), "class order icarl87 is for 100 classes, and " + from.data.name +
                                                       " has " + std::to_string(classes) +
                                                       "; expected a data set of 100 classes, or the order "
                                                       "\"seeded\", \"np1993\" or \"natural\"");
  return std::vector<std::int64_t>(icarl87.begin(), icarl87.end());
}

expected<std::vector<std::int64_t>> listed_order(const scenario& from, const std::vector<std::int64_t>& list,
                                                 std::int64_t classes) {
  const auto where = from.where("tasks.class_order");
  const auto rule = "; expected each class 0.." + std::to_string(classes - 1) + " of " + from.data.name + " once";
  std::vector<bool> is_listed(static_cast<std::size_t>(classes));
  for (const std::int64_t first : list) {
    if (first < 0 || first >= classes)
      return failed(where, "class order names class " + std::to_string(first) + rule);
    if (is_listed[static_cast<std::size_t>(first)])
      return failed(where, "class order names class " + std::to_string(first) + " twice" + rule);
    is_listed[static_cast<std::size_t>(first)] = true;
  }
  if (std::ssize(list) != classes) {
    const auto missing = std::find(is_listed.begin(), is_listed.end(), false) - is_listed.begin();
    return failed(where, "class order lists " + std::to_string(list.size()) + " of " + std::to_string(classes) +
                             " classes, not class " + std::to_string(missing) + rule);
  }
  return list;
}

} // namespace

// Legacy NumPy shuffles from the end. For each element it draws 32 bits, masks them to the smallest sufficient number
// of bits, and repeats this until the index is in range.
std::vector<std::int64_t> legacy_numpy_permutation(std::uint32_t seed, std::int64_t n) {
  MNEME_CHECK(n >= 0 && n <= 0xFFFFFFFF, n);
  mersenne_twister words(seed);
  auto order = natural_order(n);
  for (std::uint32_t last = static_cast<std::uint32_t>(n); last-- > 1;) {
    std::uint32_t mask = last;
    for (int shift = 1; shift < 32; shift *= 2)
      mask |= mask >> shift;
    std::uint32_t drawn = words.next() & mask;
    while (drawn > last)
      drawn = words.next() & mask;
    std::swap(order[last], order[drawn]);
  }
  return order;
}

expected<std::vector<std::int64_t>> class_order(const scenario& from, std::int64_t classes) {
  if (const auto* name = std::get_if<std::string>(&from.tasks.class_order))
    return named_order(from, *name, classes);
  return listed_order(from, std::get<std::vector<std::int64_t>>(from.tasks.class_order), classes);
}

} // namespace mneme
