/// run_activity: activities of each client over virtual time, from events.csv.
#pragma once
#include "tools/study/stored_run.hpp"
#include <array>
namespace mneme {

enum class client_activity : std::uint8_t {
  downloading,
  computing,
  uploading,
  waiting, ///< The client has delivered, and its round is still open.
  late,    ///< The client is still working for a closed round.
};
inline constexpr std::size_t activity_kinds = 5;

/// Activity of a client between two virtual times, in seconds.
struct client_span {
  std::uint32_t client = 0;
  client_activity activity = client_activity::downloading;
  double from_s = 0.0, to_s = 0.0;
};

/// A round with all its activities. In an asynchronous run it is the time between two server steps.
struct round_activity {
  std::int64_t round = 0; ///< Counted from 1.
  double opened_s = 0.0, closed_s = 0.0;
  std::vector<client_span> spans{}; ///< Sorted by client, then time; cut at the end of the round.
};

/// Length of a closed round in virtual seconds, divided into the activities of the client that arrived last: download,
/// computing, upload, and other waiting.
struct round_parts {
  double closed_s = 0.0;
  double download_s = 0.0, compute_s = 0.0, upload_s = 0.0, other_s = 0.0;
};

/// Mean number of clients in each activity during an interval of virtual time.
struct activity_bin {
  double at_s = 0.0; ///< Center of the interval.
  std::array<double, activity_kinds> clients{};
};

struct run_activity {
  round_activity median_round{}; ///< The earliest round whose length is the median.
  std::vector<round_parts> rounds{};
  std::vector<activity_bin> bins{};
};

/// Reads events.csv, which `mneme run --trace` writes. Returns nullopt if the run has none, or one of more than 256
/// MiB. Fails with file and line if a line is damaged.
/// @param drops_late true: the run's rounds.late is "drop"
[[nodiscard]] expected<std::optional<run_activity>> read_activity(const std::filesystem::path& folder, bool drops_late);

} // namespace mneme
