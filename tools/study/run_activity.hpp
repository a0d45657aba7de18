/// run_activity: what each client of a run was at, and when, from its events.csv.
#pragma once
#include "tools/study/stored_run.hpp"
#include <array>
namespace mneme {

enum class client_doing : std::uint8_t {
  downloading,
  computing,
  uploading,
  waiting, ///< It has delivered, and its round is open.
  late,    ///< Its round is over, and it is still at work for it.
};
inline constexpr std::size_t doings = 5;

/// A client's stretch of time at one thing, in virtual seconds.
struct client_span {
  std::uint32_t client = 0;
  client_doing doing = client_doing::downloading;
  double from_s = 0.0, to_s = 0.0;
};

/// One round with all who were at work in it. Of an asynchronous run, what lies between two server steps.
struct round_activity {
  std::int64_t round = 0; ///< From 1.
  double opened_s = 0.0, closed_s = 0.0;
  std::vector<client_span> spans{}; ///< By client, then time; those that reach beyond the round are cut there.
};

/// A closed round's length, as the client made it whose answer came last: what it took to download, to compute and to
/// upload, and what the round waited besides.
struct round_parts {
  double closed_s = 0.0;
  double download_s = 0.0, compute_s = 0.0, upload_s = 0.0, other_s = 0.0;
};

/// Clients at each thing, on average over a stretch of virtual time.
struct activity_bin {
  double at_s = 0.0; ///< Its middle.
  std::array<double, doings> clients{};
};

struct run_activity {
  round_activity median_round{}; ///< The round of the median length, the earliest of such.
  std::vector<round_parts> rounds{};
  std::vector<activity_bin> bins{};
};

/// Null where the run has no events.csv (`mneme run --trace`), or one of more than 256 MiB. Fails, naming the file and
/// its line, where a line is damaged.
/// @param drops_late as the run's rounds.late says
[[nodiscard]] expected<std::optional<run_activity>> read_activity(const std::filesystem::path& folder, bool drops_late);

} // namespace mneme
