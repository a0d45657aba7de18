#include "runtime/population/availability_trace.hpp"
#include "runtime/base/csv_fields.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <tuple>
namespace mneme {
namespace {

class reader {
public:
  explicit reader(const scenario& from)
      : path_(from.devices.availability_file.string()), clients_(from.clients.count) {}

  expected<std::shared_ptr<const availability_trace>> read(std::istream& in) {
    std::string text;
    std::getline(in, text);
    read_header(csv::without_mark(text));
    while (wrong_.size() < csv::diagnostics_max && columns_ > 0 && std::getline(in, text)) {
      ++line_;
      std::string_view rest = text;
      if (const auto line = csv::next_line(rest); !line.empty())
        read_span(csv::fields_of(line));
    }
    if (!wrong_.empty())
      return tl::unexpected(std::move(wrong_));
    return std::make_shared<const availability_trace>(std::move(spans_));
  }

private:
  void wrong(std::string text) { wrong_.push_back({path_ + ":" + std::to_string(line_), std::move(text)}); }

  void read_header(std::string_view line) {
    const auto names = csv::fields_of(line);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const auto found = std::find(names.begin(), names.end(), wanted_[i]);
      if (found == names.end())
        return wrong(
            fmt::format("the header names no column '{}'; expected a first line such as client,from,to", wanted_[i]));
      column_[i] = static_cast<std::size_t>(found - names.begin());
    }
    columns_ = names.size();
  }

  void read_span(const std::vector<std::string_view>& fields) {
    if (fields.size() != columns_)
      return wrong(fmt::format("the line has {} fields; expected {}, one for each column of the header", fields.size(),
                               columns_));
    std::int64_t client = -1;
    if (!csv::is_number(fields[column_[0]], client) || client < 0 || client >= clients_)
      return wrong(fmt::format("client = {}: expected a whole number from 0 to {} (clients.count = {})",
                               fields[column_[0]], clients_ - 1, clients_));
    double seconds[2]{};
    for (const std::size_t i : {0, 1})
      if (!csv::is_number(fields[column_[i + 1]], seconds[i]) || !(seconds[i] >= 0.0 && seconds[i] < 9e9))
        return wrong(fmt::format("{} = {}: expected seconds from the beginning of the run, from 0 to 9e9",
                                 wanted_[i + 1], fields[column_[i + 1]]));
    if (seconds[1] <= seconds[0])
      return wrong(
          fmt::format("from = {}, to = {}: expected a time that ends after it begins", seconds[0], seconds[1]));
    spans_.push_back({.client = {static_cast<std::uint32_t>(client)},
                      .from = virtual_time(rounded_up(seconds[0])),
                      .to = virtual_time(rounded_up(seconds[1]))});
  }

  static constexpr std::array<std::string_view, 3> wanted_{"client", "from", "to"};
  std::string path_;
  std::int64_t clients_;
  std::array<std::size_t, 3> column_{};
  std::size_t columns_ = 0, line_ = 1;
  std::vector<availability_span> spans_;
  diagnostics wrong_;
};

} // namespace

availability_trace::availability_trace(std::vector<availability_span> spans) {
  std::sort(spans.begin(), spans.end(), [](const availability_span& a, const availability_span& b) {
    return std::tie(a.client, a.from, a.to) < std::tie(b.client, b.from, b.to);
  });
  for (const auto& span : spans)
    if (!spans_.empty() && spans_.back().client == span.client && span.from <= spans_.back().to)
      spans_.back().to = std::max(spans_.back().to, span.to);
    else
      spans_.push_back(span);
}

availability_window availability_trace::window(client_id client, virtual_time at) const {
  const auto next = std::partition_point(spans_.begin(), spans_.end(), [&](const availability_span& span) {
    return std::tie(span.client, span.to) <= std::tie(client, at); // over by then
  });
  if (next == spans_.end() || next->client != client)
    return {.within = false, .until = never};
  const bool within = next->from <= at;
  return {.within = within, .until = within ? next->to : next->from};
}

expected<std::shared_ptr<const availability_trace>> read_availability_trace(const scenario& from) {
  if (from.devices.availability != device_availability::file)
    return nullptr;
  std::ifstream file(from.devices.availability_file, std::ios::binary);
  if (!file)
    return failed(from.where("devices.availability_file"),
                  "cannot read '" + from.devices.availability_file.string() +
                      "'; expected a CSV file with the columns client, from and to");
  return reader(from).read(file);
}

} // namespace mneme
