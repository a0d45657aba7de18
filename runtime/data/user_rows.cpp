#include "runtime/data/user_rows.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/data/splits.hpp"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
namespace mneme {
namespace {

void add_finding(diagnostics& to, std::string where, std::string text) {
  if (to.size() < own_diagnostics_max)
    to.push_back({std::move(where), std::move(text)});
}

std::vector<std::int64_t> rows_of_classes(const user_part& part, std::int64_t classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes), 0);
  for (const auto label : part.labels)
    ++counts[static_cast<std::size_t>(label)];
  return counts;
}

/// Sets the default mean and deviation: 0.5 each for pixels, 0 and 1 for numbers. These defaults apply unless the
/// scenario requests measured constants.
void set_constants(raw_data& data) {
  const auto channels = static_cast<std::size_t>(data.train.images.size(1));
  const bool holds_pixels = data.train.images.scalar_type() == at::kByte;
  data.mean.assign(channels, holds_pixels ? 0.5 : 0.0);
  data.deviation.assign(channels, holds_pixels ? 0.5 : 1.0);
}

} // namespace

const std::vector<std::string>& array_names() {
  static const std::vector<std::string> names{"train_x",      "train_y",     "test_x",      "test_y",
                                              "train_domain", "test_domain", "class_names", "domain_names"};
  return names;
}

std::string class_text(const user_classes& classes, std::int64_t label) {
  const auto at = static_cast<std::size_t>(label);
  return at < classes.names.size() ? fmt::format("class '{}'", classes.names[at]) : fmt::format("class {}", label);
}

diagnostics validate_test_share(bool has_test, const data_section& data, const std::string& where) {
  if (has_test && data.test_share > 0.0)
    return {{"data.test_share",
             fmt::format("is {}, but {} has a test part; expected 0, since otherwise a second test part would be drawn",
                         data.test_share, where)}};
  if (!has_test && data.test_share <= 0.0)
    return {{where, "has no test part; add one, or set data.test_share to the share of each class to select for it, as "
                    "in data.test_share = 0.2"}};
  return {};
}

expected<random_split> split_off_test_rows(const user_part& rows, double share, std::uint64_t seed,
                                           const user_classes& classes) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int64_t>> groups; // rows of each domain and class
  for (std::size_t row = 0; row < rows.labels.size(); ++row)
    groups[{rows.domains.empty() ? 0 : rows.domains[row], rows.labels[row]}].push_back(static_cast<std::int64_t>(row));
  std::vector<bool> is_test(rows.labels.size(), false);
  for (auto& [group, members] : groups) {
    if (members.size() < 2)
      continue;
    auto key = key_for({.seed = seed}, purpose::synthetic_data); // user data do not use this purpose otherwise
    key.index = static_cast<std::uint64_t>(group.first) << 32U | static_cast<std::uint64_t>(group.second);
    rng_stream(key).shuffle(std::span(members));
    const auto drawn =
        std::clamp<std::int64_t>(std::llround(share * static_cast<double>(members.size())), 1, std::ssize(members) - 1);
    for (std::int64_t i = 0; i < drawn; ++i)
      is_test[static_cast<std::size_t>(members[static_cast<std::size_t>(i)])] = true;
  }
  random_split parts;
  std::set<std::int32_t> tested;
  for (std::size_t row = 0; row < is_test.size(); ++row) {
    (is_test[row] ? parts.test : parts.train).push_back(static_cast<std::int64_t>(row));
    if (is_test[row])
      tested.insert(rows.labels[row]);
  }
  diagnostics errors;
  const auto counts = rows_of_classes(rows, classes.count);
  for (std::int64_t label = 0; label < classes.count; ++label)
    if (counts[static_cast<std::size_t>(label)] > 0 && !tested.contains(static_cast<std::int32_t>(label)))
      add_finding(errors, classes.where,
                  fmt::format("{} has fewer than two rows in every domain, so data.test_share can select none; add "
                              "rows, or a test part",
                              class_text(classes, label)));
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return parts;
}

diagnostics absent_classes(const user_part& train, const user_part& test, const user_classes& classes) {
  diagnostics errors;
  const auto trained = rows_of_classes(train, classes.count), tested = rows_of_classes(test, classes.count);
  for (std::size_t label = 0; label < trained.size(); ++label)
    for (const auto& [counts, part] : {std::pair{&trained, "training"}, std::pair{&tested, "test"}})
      if ((*counts)[label] == 0)
        add_finding(errors, classes.where,
                    fmt::format("{} of {} classes has no {} row; expected some of every class",
                                class_text(classes, static_cast<std::int64_t>(label)), classes.count, part));
  return errors;
}

diagnostics validate_names(const std::vector<std::string>& names, const std::string& where) {
  constexpr std::size_t bytes_max = 200;
  diagnostics errors;
  std::set<std::string> known;
  for (const auto& name : names) {
    if (name.empty() || name.size() > bytes_max || printable(name) != name ||
        name.find_first_of("\t\n") != std::string::npos)
      add_finding(errors, where,
                  fmt::format("the name '{}' cannot be shown; expected 1 to {} bytes of UTF-8 without "
                              "control characters",
                              printable(name.substr(0, bytes_max)), bytes_max));
    else if (!known.insert(name).second)
      add_finding(errors, where, fmt::format("the name '{}' occurs twice; names must differ", name));
  }
  return errors;
}

expected<raw_data> assemble_rows(image_table train, image_table test, const user_classes& classes, std::int64_t tokens,
                                 const data_section& data, std::uint64_t seed) {
  if (auto errors = validate_test_share(test.size() > 0, data, classes.where); !errors.empty())
    return tl::unexpected(std::move(errors));
  std::vector<std::int64_t> drawn_rows;
  if (test.size() == 0) {
    auto parts = split_off_test_rows({train.labels, train.domains}, data.test_share, seed, classes);
    if (!parts)
      return tl::unexpected(parts.error());
    test = selected(train, parts->test);
    train = selected(train, parts->train);
    drawn_rows = std::move(parts->test);
  }
  if (auto absent = absent_classes({train.labels, train.domains}, {test.labels, test.domains}, classes);
      !absent.empty())
    return tl::unexpected(std::move(absent));
  raw_data assembled{.name = data.name,
                     .train = std::move(train),
                     .test = std::move(test),
                     .classes = classes.count,
                     .tokens = tokens,
                     .domain_names = classes.domains,
                     .class_names = classes.names,
                     .drawn_rows = std::move(drawn_rows)};
  set_constants(assembled);
  return assembled;
}

} // namespace mneme
