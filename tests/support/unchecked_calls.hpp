/// unchecked_calls: modules whose operator calls have arguments that LibTorch's kernels do not check.
#pragma once
#include "tests/support/hostile_modules.hpp"
namespace mneme::test {

/// Adds modules with such calls: they read or write out of bounds, divide by zero, or do not terminate.
inline void add_modules_with_unchecked_calls(std::vector<hostile_module>& into) {
  const auto add = [&](const char* title, const std::string& lines) {
    into.push_back({.title = title, .entries = entries_with(code_with({.lines = lines}))});
  };
  const std::string use = "    x = torch.add(x, torch.sum(y))\n", use_number = "    x = torch.add(x, n)\n";
  add("attention with fewer keys than values", "    q = torch.reshape(x, [-1, 1, 4, 9])\n    y = "
                                               "torch.scaled_dot_product_attention(q, torch.slice(q, 2, 0, 1, 1), "
                                               "q)\n" +
                                                   use);
  add("attention of no heads", "    q = torch.reshape(x, [-1, 1, 4, 9])\n    w = torch.zeros([27, 9])\n    y, m = "
                               "torch._native_multi_head_attention(torch.zeros([2, 5, 9]), torch.zeros([2, 5, 9]), "
                               "torch.zeros([2, 5, 9]), 9, 0, w, torch.zeros([27]), torch.zeros([9, 9]), "
                               "torch.zeros([9]))\n" +
                                   use);
  add("an LSTM with states of fewer rows",
      "    z = torch.zeros([1, 1, 6])\n    y, h, c = torch.lstm(torch.zeros([5, 16, 3]), [z, z], [torch.zeros([24, "
      "3]), "
      "torch.zeros([24, 6]), torch.zeros([24]), torch.zeros([24])], True, 1, 0., False, False, False)\n" +
          use);
  add("a stride of 2^30",
      "    w = torch.zeros([1, 1, 3, 3])\n    y = torch.conv2d(x, w, None, [1073741824, 1073741824])\n" + use);
  const std::string most = "9223372036854775807";
  add("a padding of 2^63 - 1", fmt::format("    y = torch.replication_pad2d(x, [{0}, {0}, {0}, {0}])\n", most) + use);
  add("a window of 2^40", "    y = torch.max_pool1d(torch.reshape(x, [-1, 1, 36]), [1099511627776], [1], "
                          "[549755813888])\n" +
                              use);
  add("a scale of 10^-18",
      "    y = torch._upsample_bilinear2d_aa(x, [6, 6], False, 9.9999999999999998e-19, 1.)\n" + use);
  add("repeats that overflow",
      "    y = torch.repeat_interleave(torch.full([5], 4611686018427387904, dtype=4))\n" + use);
  add("the smallest integer divided by -1",
      fmt::format("    n = torch.floordiv(torch.sub(torch.neg({}), 1), -1)\n", most) + use_number);
  add("a remainder by zero", "    n = torch.remainder(torch.dim(x), torch.sub(torch.dim(x), 4))\n" + use_number);
  add("the smallest integers of a tensor divided by -1",
      fmt::format("    y = torch.div(torch.sub(torch.neg(torch.full([2], {}, dtype=4)), 1), -1, "
                  "rounding_mode=\"trunc\")\n",
                  most) +
          use);
  add("an empty text replaced", "    n = torch.len(torch.replace(\"aaa\", \"\", \"b\"))\n" + use_number);
  add("a list that doubles",
      "    l = [1]\n    for i in range(60):\n      l = torch.add(l, l)\n    n = torch.len(l)\n" + use_number);
}

} // namespace mneme::test
