#include "tools/cli/job_array.hpp"
#include "runtime/base/atomic_file.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

namespace fs = std::filesystem;

/// Quotes the text as one shell word.
std::string quoted_word(const std::string& text) {
  std::string word = "'";
  for (const char next : text)
    word += next == '\'' ? std::string(R"('\'')") : std::string(1, next);
  return word + "'";
}

constexpr const char* script_text = R"(#!/bin/bash
# {0} runs of a sweep as a job array:  sbatch {1}
# If submitted again, it resumes interrupted runs; then `mneme sweep` with the same arguments prints the table.
#SBATCH --array=1-{0}
#SBATCH --ntasks=1 --cpus-per-task={2}
#SBATCH --signal=B:TERM@120
set -euo pipefail
export PATH="${{MNEME_HOME:-$HOME/mneme}}/bin:$PATH"
IFS=$'\t' read -r scenario folder < <(sed -n "${{SLURM_ARRAY_TASK_ID}}p" {3})
if [ -e "$folder/scenario.toml" ]; then
  exec mneme resume "$folder" --threads "${{SLURM_CPUS_PER_TASK:-1}}" --quiet
fi
exec mneme run "$scenario" --out "$folder" --threads "${{SLURM_CPUS_PER_TASK:-1}}" --quiet
)";

} // namespace

void write_job_array(const fs::path& script, const std::vector<array_point>& points, std::int64_t threads) {
  auto beside = fs::absolute(script);
  beside += ".points";
  std::string list;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto folder = beside / std::to_string(i + 1);
    fs::create_directories(folder);
    const auto file = folder / (points[i].name + ".toml");
    write_atomically(file, points[i].scenario);
    list += fmt::format("{}\t{}\n", file.string(), fs::absolute(points[i].folder).string());
  }
  const auto list_file = beside / "list";
  write_atomically(list_file, list);
  write_atomically(script, fmt::format(fmt::runtime(script_text), points.size(), script.string(), threads,
                                       quoted_word(list_file.string())));
}

} // namespace mneme
