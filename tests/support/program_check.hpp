/// program_check: checks that the bits of a program call do not depend on the calls that run with it.
#pragma once
#include "runtime/training/executor.hpp"
#include "tests/support/tensors.hpp"
namespace mneme::test {

inline const tensor_map& tensors_of(const job_outcome& outcome) {
  if (const auto* reason = std::get_if<std::string>(&outcome))
    FAIL("job failed: " << *reason);
  return *std::get<program_output>(std::get<work_output>(outcome)).out;
}

/// Runs jobs of one program in groups of `width`.
inline outcomes run_by_width(const std::vector<program_job>& wanted, std::size_t width) {
  const auto runs = make_executor("cpu");
  outcomes results;
  for (std::size_t first = 0; first < wanted.size(); first += width) {
    std::vector<job> batch;
    for (auto i = first; i < std::min(first + width, wanted.size()); ++i)
      batch.push_back({.id = {{i}, 0, 0}, .request = wanted[i]});
    for (auto& result : runs->run(batch))
      results.push_back(std::move(result));
  }
  return results;
}

/// Number of jobs whose bits differ.
inline std::size_t jobs_that_differ(const outcomes& alone, const outcomes& together) {
  std::size_t different = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const auto &a = tensors_of(alone[i]), &b = tensors_of(together[i]);
    REQUIRE(a.size() == b.size());
    bool is_equal = true;
    for (const auto& [name, value] : a)
      is_equal = is_equal && same_bits(value, b.at(name));
    different += !is_equal;
  }
  return different;
}

/// Number of jobs whose bits differ between groups of `width` and separate execution.
inline std::size_t jobs_that_differ(const std::vector<program_job>& wanted, std::size_t width) {
  return jobs_that_differ(run_by_width(wanted, 1), run_by_width(wanted, width));
}

inline void check_program(const std::vector<program_job>& wanted,
                          std::initializer_list<std::size_t> widths = {2, 7, 16, 64}) {
  for (const auto& job : wanted)
    REQUIRE(key_of(job) == key_of(wanted.front()));
  const auto alone = run_by_width(wanted, 1);
  for (const auto width : widths) {
    INFO("width " << width);
    CHECK(jobs_that_differ(alone, run_by_width(wanted, width)) == 0);
    if (width >= wanted.size()) // larger groups are the same
      break;
  }
}

} // namespace mneme::test
