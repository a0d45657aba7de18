#include "tools/cli/run_options.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/base/trim.hpp"
#include <charconv>
namespace mneme {
expected<std::int64_t> threads_option(const std::string& text) {
  constexpr std::int64_t threads_max = 4096;
  std::int64_t threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (text.empty() || (whole && threads >= 1 && threads <= threads_max))
    return threads;
  return failed("", "--threads = '" + text + "': expected an integer in [1, " + std::to_string(threads_max) + "]");
}

expected<overrides> parse_settings(const std::vector<std::string>& settings) {
  overrides out;
  for (const auto& name : settings) {
    const auto equals = name.find('=');
    // blanks around `=` are ignored, as in a scenario
    const auto key = trim(std::string_view(name).substr(0, equals));
    if (equals == std::string::npos || key.empty())
      return failed("", "--set '" + name + "': expected KEY=VALUE, as in --set rounds.cohort=5");
    out.emplace_back(key, trim(std::string_view(name).substr(equals + 1)));
  }
  return out;
}

progress_style style_option(bool quiet, bool json) {
  if (json)
    return progress_style::json;
  return quiet ? progress_style::quiet : default_style(stdout);
}

void warn_of_absent_round(const run_summary& ended, std::int64_t round) {
  if (round > ended.rounds && ended.status == "done")
    std::fprintf(stderr, "warning: --dump-round %lld: the run has only %lld rounds, so no values were written\n",
                 static_cast<long long>(round), static_cast<long long>(ended.rounds));
}

int exit_code_of(const run_summary& ended) {
  if (ended.status == "failed")
    std::fprintf(stderr, "error: %s\n", printable_message(ended.error).c_str());
  if (!ended.resume_from.empty())
    std::fprintf(stderr, "resume with `mneme resume %s`\n", printable(ended.resume_from).c_str());
  if (ended.status == "interrupted")
    return exit_interrupted;
  return ended.status == "done" ? exit_done : exit_failed;
}

} // namespace mneme
