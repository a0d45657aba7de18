#include "tools/bench/kernels/kernel_comparison.hpp"
#include "runtime/base/rng.hpp"
#include "tools/bench/bench_seconds.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <algorithm>
#include <cstring>
#include <stdexcept>
namespace mneme::bench {
namespace {

using runner = std::function<at::Tensor(const operands&)>;

/// Seconds per call, averaged over `calls` calls.
double seconds_of_call(const std::function<void()>& call, int calls) {
  const double began = wall_seconds();
  for (int i = 0; i < calls; ++i)
    call();
  return (wall_seconds() - began) / calls;
}

int calls_for(const std::function<void()>& call) {
  call(); // warm up buffers and caches
  const double once = std::min(seconds_of_call(call, 1), seconds_of_call(call, 1));
  return static_cast<int>(std::clamp(1e-4 / once, 1.0, 1000.0));
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const auto x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// Copies a tensor to memory that begins `elements` after a cache line boundary.
at::Tensor moved(const at::Tensor& from, std::int64_t elements) {
  constexpr std::int64_t line = 64;
  auto memory = at::empty({from.numel() + 2 * line}, from.options());
  const auto beyond = reinterpret_cast<std::uintptr_t>(memory.const_data_ptr()) % line;
  const auto first = static_cast<std::int64_t>((line - beyond) / from.element_size()) + elements;
  return memory.narrow(0, first, from.numel()).view(from.sizes()).copy_(from);
}

/// True if the result's bits do not depend on the alignment of any operand.
bool is_placed(const runner& run, const operands& in) {
  const auto expected = run(in).clone();
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::int64_t place = 0; place < 16; ++place) {
      auto changed = in;
      changed[i] = moved(in[i], place);
      if (!same_bits(run(changed), expected))
        return false;
    }
  return true;
}

/// True if each model's result has the bits that it has when computed alone.
bool is_grouped(const runner& run, const operands& in) {
  const auto together = run(in).clone();
  for (std::int64_t k = 0; k < together.size(0); ++k) {
    operands alone;
    for (const auto& operand : in)
      alone.push_back(operand.narrow(0, k, 1));
    if (!same_bits(run(alone)[0], together[k]))
      return false;
  }
  return true;
}

} // namespace

at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) {
  auto values = at::empty(sizes, at::kFloat);
  rng_stream draw({.seed = seed, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
  return values;
}

figures compare_kernels(const kernel_comparison& pair) {
  auto out = pair.out.clone();
  const runner ours = [&](const operands& in) {
    auto made = at::full_like(pair.out.narrow(0, 0, in[0].size(0)), 7);
    pair.ours(in, made);
    return made;
  };
  const auto our_result = ours(pair.in), their_result = pair.theirs(pair.in).clone(at::MemoryFormat::Contiguous);
  if (our_result.sizes() != their_result.sizes() ||
      !at::allclose(our_result.to(at::kDouble), their_result.to(at::kDouble), 1e-3, 1e-3))
    throw std::runtime_error(pair.kernel + ", " + pair.shape + ": ours and LibTorch's do not compute the same");

  const auto call_ours = [&] { pair.ours(pair.in, out); };
  const auto call_theirs = [&] { (void)pair.theirs(pair.in); };
  const int our_calls = calls_for(call_ours), their_calls = calls_for(call_theirs);
  figures found{.our_us = 1e30, .their_us = 1e30};
  std::vector<double> ratios;
  for (int turn = 0; turn < 5; ++turn) {
    double our_best = 1e30, their_best = 1e30;
    for (int repeat = 0; repeat < 40; ++repeat) {
      our_best = std::min(our_best, seconds_of_call(call_ours, our_calls));
      their_best = std::min(their_best, seconds_of_call(call_theirs, their_calls));
    }
    ratios.push_back(their_best / our_best);
    found.our_us = std::min(found.our_us, 1e6 * our_best);
    found.their_us = std::min(found.their_us, 1e6 * their_best);
  }
  std::sort(ratios.begin(), ratios.end());
  found.ratio = ratios[2], found.ratio_min = ratios.front(), found.ratio_max = ratios.back();

  found.equal_bits = same_bits(our_result, their_result);
  found.ours_placed = is_placed(ours, pair.in);
  found.theirs_placed = is_placed(pair.theirs, pair.in);
  found.ours_grouped = is_grouped(ours, pair.in);
  found.theirs_grouped = is_grouped(pair.theirs, pair.in);
  return found;
}

} // namespace mneme::bench
