#include "runtime/results/timeline.hpp"
#include "runtime/base/archive.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
namespace mneme {
namespace {

/// Merges two consecutive bins into `bin`.
void join(timeline_bin& bin, const timeline_bin& next) {
  const auto first = bin.first;
  const auto most = std::max(bin.in_flight_max, next.in_flight_max);
  bin = next; // counts are totals at the end of the bin
  bin.first = first;
  bin.in_flight_max = most;
}

std::int64_t rounds_in(const timeline_bin& bin) { return std::int64_t{bin.last.value} - bin.first.value + 1; }

} // namespace

void timeline::add(timeline_bin round) {
  if (!bins_.empty() && !(bins_.back().last < round.first)) // possible only in a forged checkpoint
    throw std::invalid_argument(fmt::format("the timeline already has round {}", round.first.value + 1));
  round.in_flight_max = std::max(round.in_flight_max, round.in_flight);
  if (!bins_.empty() && rounds_in(bins_.back()) < rounds_per_bin_)
    return join(bins_.back(), round);
  if (bins_.size() == bins_max) {
    for (std::size_t i = 0; 2 * i < bins_.size(); ++i) {
      bins_[i] = bins_[2 * i];
      join(bins_[i], bins_[2 * i + 1]);
    }
    bins_.resize(bins_max / 2);
    rounds_per_bin_ *= 2;
  }
  bins_.push_back(round);
}

void timeline_bin::persist(archive& state) {
  // Structured bindings name every member, so that adding one fails to compile until this line handles it.
  auto& [first_round, last_round, of_task, ended, under_way, under_way_max, enrolled, delivered, late, lost, up, down,
         staleness, loss] = *this;
  state(first_round)(last_round)(of_task)(ended)(under_way)(under_way_max)(enrolled)(delivered)(late)(lost);
  state(up)(down)(staleness)(loss);
  constexpr std::int64_t count_max = std::int64_t{1} << 62; // adding later counts to such a sum cannot overflow
  for (const auto count : {under_way, under_way_max, enrolled, delivered, late, lost, up, down, staleness})
    if (state.loading() && (count < 0 || count > count_max))
      throw archive_error("has a count in its timeline that no run can have");
}

void timeline::persist(archive& state) {
  state(rounds_per_bin_)(bins_);
  if (state.loading() && (rounds_per_bin_ < 1 || bins_.size() > bins_max))
    throw archive_error("has a timeline of more bins than there can be");
}

std::string json_text(const timeline_bin& bin) {
  nlohmann::ordered_json line;
  line["first_round"] = bin.first.value + 1;
  line["round"] = bin.last.value + 1;
  line["task"] = bin.task.value + 1;
  line["virtual_s"] = in_seconds(bin.at);
  line["in_flight"] = bin.in_flight;
  line["in_flight_max"] = bin.in_flight_max;
  line["clients_enrolled"] = bin.clients_enrolled;
  line["client_rounds"] = bin.client_rounds;
  line["late_uploads"] = bin.late_uploads;
  line["dropped"] = bin.dropped;
  line["upload_bytes"] = bin.upload_bytes;
  line["download_bytes"] = bin.download_bytes;
  line["staleness_mean"] =
      bin.client_rounds > 0
          ? nlohmann::ordered_json(static_cast<double>(bin.staleness_sum) / static_cast<double>(bin.client_rounds))
          : nlohmann::ordered_json(nullptr);
  line["training_loss"] =
      bin.training_loss ? nlohmann::ordered_json(*bin.training_loss) : nlohmann::ordered_json(nullptr);
  return line.dump();
}

} // namespace mneme
