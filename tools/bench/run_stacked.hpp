/// run_stacked: runs the programs of a benchmark in stacks of a given width.
#pragma once
#include "runtime/base/digest.hpp"
#include "runtime/training/executor.hpp"
#include <cstdlib>
#include <fmt/format.h>
namespace mneme::bench {

/// Runs all jobs once. Returns the digest of their results. Aborts if a job fails.
/// @param jobs jobs of one program each
/// @param width number of programs per stack
inline digest128 run_stacked(executor& device, std::span<const job> jobs, std::size_t width) {
  run_digest digest;
  for (std::size_t first = 0; first < jobs.size(); first += width)
    for (const auto& outcome : device.run(jobs.subspan(first, std::min(width, jobs.size() - first)))) {
      if (const auto* reason = std::get_if<std::string>(&outcome)) {
        fmt::print(stderr, "a program failed: {}\n", *reason);
        std::exit(1);
      }
      digest.add(digest_of(*std::get<program_output>(std::get<work_output>(outcome)).out));
    }
  return digest.value();
}

} // namespace mneme::bench
