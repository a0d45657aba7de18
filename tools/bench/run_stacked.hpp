/// run_stacked: programs of a benchmark, so many at a time.
#pragma once
#include "runtime/base/digest.hpp"
#include "runtime/training/executor.hpp"
#include <cstdlib>
#include <fmt/format.h>
namespace mneme::bench {

/// All jobs once; the digest of what they made. A job that fails ends the process.
/// @param jobs programs @param width how many run stacked
inline digest128 run_stacked(executor& device, std::span<const job> jobs, std::size_t width) {
  run_digest digest;
  for (std::size_t first = 0; first < jobs.size(); first += width)
    for (const auto& outcome : device.run(jobs.subspan(first, std::min(width, jobs.size() - first)))) {
      if (const auto* why = std::get_if<std::string>(&outcome)) {
        fmt::print(stderr, "a program failed: {}\n", *why);
        std::exit(1);
      }
      digest.add(digest_of(*std::get<program_output>(std::get<work_output>(outcome)).out));
    }
  return digest.value();
}

} // namespace mneme::bench
