#include "actors/run/reproduce_run.hpp"
#include "runtime/base/printable.hpp"
#include "tools/cli/arithmetic.hpp"
#include "tools/cli/interrupts.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include "tools/study/run_difference.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

namespace fs = std::filesystem;

bool is_of_tensors(differing_part part) {
  return part == differing_part::delivery || part == differing_part::upload || part == differing_part::model;
}

/// Suggests a command that gives more details than the folders contain. Returns "" if there is none.
std::string advice(const run_difference& difference, const diff_arguments& arguments) {
  if (arguments.again || !difference.where || !is_of_tensors(difference.where->part) || difference.where->element)
    return {};
  const auto again =
      fmt::format("mneme verify RUN_DIR --trace --dump-round {} --keep NEW_DIR", difference.where->round);
  return fmt::format("to see client, tensor and element: mneme diff {} {} --again, if this machine reproduces both; "
                     "otherwise run `{}` for each run on its own machine, and then mneme diff on the new folders\n",
                     arguments.folders[0], arguments.folders[1], again);
}

/// Reruns both runs on this machine, stores the uploads of the given round, and compares them.
expected<run_difference> found_again(const diff_arguments& arguments, std::int64_t threads, std::int64_t round) {
  const temp_folder scratch;
  for (std::size_t i = 0; i < arguments.folders.size(); ++i) {
    const fs::path folder = arguments.folders[i];
    const auto out = scratch.path() / std::to_string(i);
    const auto repeated = reproduce_run(folder, {.out = out,
                                                 .threads = threads,
                                                 .style = progress_style::quiet,
                                                 .trace = true,
                                                 .dumped_round = round,
                                                 .interrupts = &watch_interrupts()});
    if (!repeated)
      return tl::unexpected(repeated.error());
    if (repeated->status == "interrupted")
      return failed(folder.string(), "was interrupted while it was reproduced");
    const auto same = difference_of(folder, out);
    if (!same)
      return tl::unexpected(same.error());
    if (same->where && same->where->round <= round)
      return failed(
          folder.string(),
          fmt::format("is not reproducible on this machine: it differs from round {} on; reproduce each run on the "
                      "machine that computed it, with mneme verify {} --trace --dump-round {} --keep NEW_DIR",
                      same->where->round, folder.string(), round));
  }
  return difference_of(scratch.path() / "0", scratch.path() / "1");
}

} // namespace

int diff_runs(const diff_arguments& arguments) {
  if (arguments.folders.size() != 2)
    return bad_input("expected two runs, as in mneme diff RUN_A RUN_B");
  const auto threads = threads_option(arguments.threads);
  if (!threads)
    return print_errors(threads.error());
  if (arguments.again)
    if (const auto settings = read_run_scenario(arguments.folders[0]))
      if (auto ready = reexec_with(settings->worker.arithmetic); !ready)
        return print_errors(ready.error());
  auto difference = difference_of(arguments.folders[0], arguments.folders[1]);
  if (difference && arguments.again && difference->where && is_of_tensors(difference->where->part) &&
      !difference->where->element) {
    auto again = found_again(arguments, *threads, difference->where->round);
    if (!again)
      return print_errors(again.error());
    difference->where = again->where;
  }
  if (!difference)
    return print_errors(difference.error());
  std::fputs(printable(difference_text(*difference, arguments.folders[0], arguments.folders[1]) +
                       advice(*difference, arguments))
                 .c_str(),
             stdout);
  return difference->is_same() ? exit_done : exit_failed;
}

} // namespace mneme
