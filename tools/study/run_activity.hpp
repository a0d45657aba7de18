/// run_activity: activities of each client over virtual time, from events.csv.
#pragma once
#include "tools/study/stored_run.hpp"
#include <array>
namespace mneme {

enum class client_doing : std::uint8_t {
  downloading,
  computing,
  uploading,
  waiting, ///< It has delivered; its round is open.
  late,    ///< It still works for a round that has closed.
};
inline constexpr std::size_t doings = 5;

/// An activity of a client from one virtual time to another, in seconds.
struct client_span {
  std::uint32_t client = 0;
  client_doing doing = client_doing::downloading;
  double from_s = 0.0, to_s = 0.0;
};

/// A round with all its activities. Asynchronous runs: the time between two server steps.
struct round_activity {
  std::int64_t round = 0; ///< From 1.
  double opened_s = 0.0, closed_s = 0.0;
  std::vector<client_span> spans{}; ///< By client, then time; cut at the end of the round.
};

/// Length of a closed round, divided by the activities of the client that arrived last: download, computing, upload,
/// and other waiting.
struct round_parts {
  double closed_s = 0.0;
  double download_s = 0.0, compute_s = 0.0, upload_s = 0.0, other_s = 0.0;
};

/// Mean number of clients in each activity during an interval of virtual time.
struct activity_bin {
  double at_s = 0.0; ///< Center of the interval.
  std::array<double, doings> clients{};
};

struct run_activity {
  round_activity median_round{}; ///< The round of median length, the earliest if several.
  std::vector<round_parts> rounds{};
  std::vector<activity_bin> bins{};
};

/// Returns nullopt if the run has no events.csv (`mneme run --trace`), or one of more than 256 MiB. Fails with file and
/// line if a line is damaged.
/// @param drops_late value of the run's rounds.late
[[nodiscard]] expected<std::optional<run_activity>> read_activity(const std::filesystem::path& folder, bool drops_late);

} // namespace mneme
