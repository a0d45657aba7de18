#include "tools/study/run_activity.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/disk_file.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <sstream>
namespace mneme {
namespace {

constexpr std::uintmax_t bytes_max = std::uintmax_t{256} << 20; // limit; larger files are not read
constexpr std::size_t bins_max = 200;

struct event_line {
  double at_s = 0.0;
  std::string_view event{};
  std::optional<std::uint32_t> client{};
  std::int64_t round = 0;
};

/// A client at work: its activity, the start of the activity, and the time spent on earlier activities.
struct working_client {
  client_activity activity = client_activity::downloading;
  double since_s = 0.0;
  std::int64_t round = 0;
  round_parts so_far{};
};

class activity_reader {
public:
  explicit activity_reader(bool drops_late) : drops_late_(drops_late) {}

  void take(const event_line& line) {
    now_s_ = line.at_s;
    if (line.event == "open_round")
      rounds_.push_back({.round = line.round, .opened_s = now_s_});
    else if (line.event == "close_round" && !rounds_.empty())
      close();
    else if (line.client)
      take_of_client(line);
  }

  run_activity finish() {
    for (auto& [client, at_work] : at_work_)
      end_span(client, at_work);
    run_activity activity{.rounds = std::move(parts_)};
    activity.bins = bins();
    if (const auto* const median = median_round())
      activity.median_round = within(*median);
    return activity;
  }

private:
  struct open_round {
    std::int64_t round = 0;
    double opened_s = 0.0;
    std::optional<double> closed_s{};
    round_parts last{}; ///< times of the client that delivered last
  };

  void take_of_client(const event_line& line) {
    const auto client = *line.client;
    if (line.event == "dispatch" || line.event == "observe") {
      at_work_[client] = {.since_s = now_s_, .round = line.round};
      return;
    }
    const auto entry = at_work_.find(client);
    if (entry == at_work_.end())
      return;
    auto& at_work = entry->second;
    if (line.event == "start" || line.event == "next_stage")
      begin(client, at_work, client_activity::computing);
    else if (line.event == "upload")
      begin(client, at_work, client_activity::uploading);
    else if (line.event == "deliver")
      deliver(client, at_work);
    else if (line.event == "late" || line.event == "drop_out" || line.event == "left" || line.event == "abandoned" ||
             line.event == "observed" || line.event == "looked") // "looked": runs of older versions
      line.event == "late" ? mark_late(client, at_work) : end(client, at_work);
  }

  /// Handles a passed deadline. If late uploads are kept, the client continues as before. If they are dropped, the
  /// interrupted activity is shown as late.
  void mark_late(std::uint32_t client, working_client& at_work) {
    if (drops_late_) {
      at_work.activity = client_activity::late;
      return end(client, at_work);
    }
    end_span(client, at_work);
    at_work.activity = client_activity::late;
  }

  void begin(std::uint32_t client, working_client& at_work, client_activity activity) {
    end_span(client, at_work);
    if (at_work.activity != client_activity::late)
      at_work.activity = activity;
  }

  void deliver(std::uint32_t client, working_client& at_work) {
    end_span(client, at_work);
    if (!rounds_.empty())
      rounds_.back().last = at_work.so_far;
    if (at_work.activity == client_activity::late) {
      at_work_.erase(client);
      return;
    }
    at_work.activity = client_activity::waiting;
  }

  void end(std::uint32_t client, working_client& at_work) {
    end_span(client, at_work);
    at_work_.erase(client);
  }

  /// Ends the round: clients that have delivered stop waiting.
  void close() {
    auto& round = rounds_.back();
    round.closed_s = now_s_;
    for (auto next = at_work_.begin(); next != at_work_.end();) {
      auto& [client, at_work] = *next;
      const bool is_over = at_work.activity == client_activity::waiting;
      if (is_over)
        end_span(client, at_work);
      next = is_over ? at_work_.erase(next) : std::next(next);
    }
    auto parts = round.last;
    parts.closed_s = now_s_;
    const double length_s = now_s_ - round.opened_s;
    parts.other_s = std::max(length_s - parts.download_s - parts.compute_s - parts.upload_s, 0.0);
    parts_.push_back(parts);
  }

  void end_span(std::uint32_t client, working_client& at_work) {
    const double took_s = now_s_ - at_work.since_s;
    switch (at_work.activity) {
    case client_activity::downloading:
      at_work.so_far.download_s += took_s;
      break;
    case client_activity::computing:
      at_work.so_far.compute_s += took_s;
      break;
    case client_activity::uploading:
      at_work.so_far.upload_s += took_s;
      break;
    case client_activity::waiting:
    case client_activity::late:
      break;
    }
    if (took_s > 0.0)
      spans_.push_back({.client = client, .activity = at_work.activity, .from_s = at_work.since_s, .to_s = now_s_});
    at_work.since_s = now_s_;
  }

  /// Mean number of clients in each activity, for intervals of equal length.
  [[nodiscard]] std::vector<activity_bin> bins() const {
    if (spans_.empty() || now_s_ <= 0.0)
      return {};
    const auto count = std::clamp<std::size_t>(rounds_.size() * 4, 20, bins_max);
    const double width_s = now_s_ / static_cast<double>(count);
    std::vector<activity_bin> averages(count);
    for (std::size_t b = 0; b < count; ++b)
      averages[b].at_s = (static_cast<double>(b) + 0.5) * width_s;
    for (const auto& span : spans_) {
      const auto first = static_cast<std::size_t>(span.from_s / width_s);
      for (auto b = first; b < count && static_cast<double>(b) * width_s < span.to_s; ++b) {
        const double from_s = std::max(span.from_s, static_cast<double>(b) * width_s);
        const double to_s = std::min(span.to_s, static_cast<double>(b + 1) * width_s);
        averages[b].clients[static_cast<std::size_t>(span.activity)] += std::max(to_s - from_s, 0.0) / width_s;
      }
    }
    return averages;
  }

  [[nodiscard]] const open_round* median_round() const {
    std::vector<const open_round*> closed;
    for (const auto& round : rounds_)
      if (round.closed_s)
        closed.push_back(&round);
    if (closed.empty())
      return nullptr;
    const auto length = [](const open_round* round) { return *round->closed_s - round->opened_s; };
    std::stable_sort(closed.begin(), closed.end(), [&](const auto* a, const auto* b) { return length(a) < length(b); });
    return closed[(closed.size() - 1) / 2];
  }

  [[nodiscard]] round_activity within(const open_round& round) const {
    round_activity shown{.round = round.round, .opened_s = round.opened_s, .closed_s = *round.closed_s};
    for (auto span : spans_) {
      span.from_s = std::max(span.from_s, shown.opened_s);
      span.to_s = std::min(span.to_s, shown.closed_s);
      if (span.from_s < span.to_s)
        shown.spans.push_back(span);
    }
    std::stable_sort(shown.spans.begin(), shown.spans.end(), [](const client_span& a, const client_span& b) {
      return std::pair(a.client, a.from_s) < std::pair(b.client, b.from_s);
    });
    return shown;
  }

  const bool drops_late_;
  double now_s_ = 0.0;
  std::map<std::uint32_t, working_client> at_work_;
  std::vector<open_round> rounds_;
  std::vector<round_parts> parts_;
  std::vector<client_span> spans_;
};

} // namespace

expected<std::optional<run_activity>> read_activity(const std::filesystem::path& folder, bool drops_late) {
  const auto path = folder / "events.csv";
  std::error_code none;
  const auto bytes = std::filesystem::file_size(path, none);
  if (none || bytes > bytes_max)
    return std::optional<run_activity>{};
  auto file = open_stream(path);
  if (!file)
    return failed(path.string(), file.error());
  std::string text;
  std::getline(*file, text); // header line
  activity_reader reader(drops_late);
  for (std::size_t number = 2; std::getline(*file, text); ++number) {
    csv::record_reader record(text);
    static_cast<void>(record.next());
    const auto& fields = record.fields();
    event_line line;
    std::uint32_t client = 0;
    if (fields.size() != 7 || !csv::parse_number(fields[0], line.at_s) || !csv::parse_number(fields[5], line.round))
      return failed(fmt::format("{}:{}", path.string(), number),
                    "is damaged: expected virtual_s,actor,event,client,task,round,bytes; run the scenario again");
    line.event = fields[2];
    if (csv::parse_number(fields[3], client))
      line.client = client;
    reader.take(line);
  }
  return std::optional(reader.finish());
}

} // namespace mneme
