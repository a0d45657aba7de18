#include "actors/run/reproduce_run.hpp"
#include "runtime/base/printable.hpp"
#include "tools/cli/arithmetic.hpp"
#include "tools/cli/interrupts.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include "tools/study/accuracy_plot.hpp"
#include "tools/study/run_difference.hpp"
#include "tools/study/stored_run.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t digest_digits = 32, digest_digits_min = 8;

/// Parses a run digest, or its first digits. Returns it in lower case.
expected<std::string> digest_option(std::string text) {
  for (auto& digit : text)
    digit = digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a') : digit;
  const bool is_hex = text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_hex || text.size() < digest_digits_min || text.size() > digest_digits)
    return failed("", fmt::format("--digest '{}': expected a run digest, or at least its first {} of {} hex digits",
                                  text, digest_digits_min, digest_digits));
  return text;
}

/// The digits with which the digest of the rerun must begin.
expected<std::string> promised_digest(const verify_arguments& arguments, const fs::path& folder) {
  if (!arguments.digest.empty())
    return digest_option(arguments.digest);
  const auto stored = read_stored_run(folder);
  if (!stored)
    return tl::unexpected(stored.error());
  if (stored->status != "done")
    return failed(folder.string(),
                  fmt::format("the run is {} and has no digest yet; resume it first with mneme resume {}",
                              stored->status, folder.string()));
  return stored->run_digest;
}

/// Prints where the two runs begin to differ, if their folders show this.
void print_difference(const fs::path& folder, const fs::path& repeated) {
  const auto difference = difference_of(folder, repeated);
  if (!difference) {
    print_errors(difference.error());
    return;
  }
  std::fputs(printable(difference_text(*difference, folder.string(), "the reproduction")).c_str(), stdout);
}

int compare_with(const std::string& promised, const fs::path& folder, const run_summary& repeated, bool quiet) {
  if (repeated.status != "done")
    return exit_code_of(repeated);
  const bool is_same = repeated.run_digest.starts_with(promised);
  if (!quiet || !is_same)
    fmt::print("{}: {}\n  expected {}\n  computed {}\n", is_same ? "same" : "DIFFERENT", printable(folder.string()),
               promised, repeated.run_digest);
  if (is_same)
    return exit_done;
  const auto stored = read_stored_run(folder);
  if (stored && stored->run_digest == repeated.run_digest)
    fmt::print("the reproduced run equals its folder, so --digest belongs to another run\n");
  else if (stored && stored->digest_epoch != digest_epoch)
    fmt::print("the run was recorded with digest epoch {} by mneme {}, and this version computes digests of epoch {}; "
               "verify the run with the version that recorded it\n",
               stored->digest_epoch, stored->version, digest_epoch);
  else
    print_difference(folder, repeated.folder);
  return exit_failed;
}

} // namespace

int verify_run(const verify_arguments& arguments) {
  if (arguments.folders.size() != 1)
    return bad_input(std::string(arguments.folders.empty() ? "no run given" : "more than one run given") +
                     "; expected mneme verify RUN_DIR, as in mneme verify runs/quickstart-fedavg-s1-01234567");
  const fs::path folder = arguments.folders.front();
  const auto threads = threads_option(arguments.threads);
  if (!threads)
    return print_errors(threads.error());
  const auto promised = promised_digest(arguments, folder);
  if (!promised)
    return print_errors(promised.error());
  if (std::error_code none; !arguments.keep.empty() && fs::exists(fs::symlink_status(arguments.keep, none)))
    return bad_input("--keep '" + arguments.keep + "' already exists; choose a new folder");
  if (const auto settings = read_run_scenario(folder))
    if (auto ready = reexec_with(settings->worker.arithmetic); !ready)
      return print_errors(ready.error());
  const temp_folder scratch;
  const auto repeated =
      reproduce_run(folder, {.out = arguments.keep.empty() ? scratch.path() / "run" : fs::path(arguments.keep),
                             .threads = *threads,
                             .style = arguments.quiet ? progress_style::quiet : default_style(stdout),
                             .trace = arguments.trace || fs::exists(folder / "deliveries.csv"),
                             .dumped_round = arguments.dumped_round,
                             .interrupts = &watch_interrupts(),
                             .draw_accuracy = accuracy_plot_svg});
  if (!repeated)
    return print_errors(repeated.error());
  warn_of_absent_round(*repeated, arguments.dumped_round);
  return compare_with(*promised, folder, *repeated, arguments.quiet);
}

} // namespace mneme
