// Shakespeare: the lines of each role, cut into windows of 80 characters with the next character as label (Caldas et
// al. 2018, LEAF). Tokens are indices in LEAF's alphabet. Classes are target characters, the most frequent first, so a
// class-incremental task is a set of target characters.
//
// shakespeare-roles: the same lines for language models, cut into rows of 80 characters without overlap. Classes are
// roles and domains are plays.
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/byte_stream.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/row_filter.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <string_view>
namespace mneme {
namespace {

constexpr std::string_view alphabet =
    "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}";
constexpr std::int64_t window = 80;                   // characters
constexpr std::size_t test_every = 10;                // one test speech per ten speeches of a role
constexpr std::uint64_t content_bytes_max = 1U << 28; // all plays together have five million bytes

const file_set shakespeare_files{
    .data_set = "shakespeare",
    .folders = {"shakespeare"},
    .names = {{"speeches.tsv"}},
    .remedy = "There is no public download in this form: write a line for each speech, 'play TAB "
              "speaker TAB text', in the order of the plays."};

/// The text of one role in each split, as tokens. Speeches are separated by a space.
struct role_text {
  std::string train{}, test{};
  std::size_t speeches = 0;
  std::string_view play{}, name{}; ///< Parts of the file's content.
};

/// The token of a character. Characters outside of LEAF's alphabet, such as '$', become spaces.
char token_of(char letter) {
  const auto entry = alphabet.find(letter);
  return static_cast<char>(entry == std::string_view::npos ? alphabet.find(' ') : entry);
}

expected<std::string> content_of(const std::filesystem::path& path) {
  auto stream = byte_stream::open(path);
  if (!stream)
    return tl::unexpected(stream.error());
  const auto bytes = stream->content_bytes();
  if (!bytes)
    return tl::unexpected(bytes.error());
  if (*bytes > content_bytes_max)
    return failed(
        stream->place(content_bytes_max),
        fmt::format(
            "the content continues here, to {} bytes; all plays have five million: is it the file of another data set?",
            *bytes));
  auto again = byte_stream::open(path); // opens the file again, because the first pass has read it to count the bytes
  std::string content(static_cast<std::size_t>(*bytes), ' ');
  if (auto read = again->read({reinterpret_cast<std::uint8_t*>(content.data()), content.size()}); !read)
    return tl::unexpected(read.error());
  if (auto end = again->expect_end(); !end)
    return tl::unexpected(end.error());
  return content;
}

/// The roles of all plays, in the order of their first speeches.
expected<std::vector<role_text>> roles_in(const std::string& content, const std::filesystem::path& path) {
  std::vector<role_text> roles;
  std::map<std::string_view, std::size_t> places; // index of a role, by play and speaker
  const std::string_view text(content);
  for (std::size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto speech = text.substr(begin, end - begin);
    const auto first = speech.find('\t'), second = speech.find('\t', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos)
      return failed(fmt::format("{}:{}", path.string(), line),
                    fmt::format("expected 'play TAB speaker TAB text', found {} tab{}: is it the file of another data "
                                "set?",
                                first == std::string_view::npos ? 0 : 1, first == std::string_view::npos ? "s" : ""));
    const auto [place, fresh] = places.try_emplace(speech.substr(0, second), roles.size());
    if (fresh)
      roles.push_back({.play = speech.substr(0, first), .name = speech.substr(first + 1, second - first - 1)});
    auto& role = roles[place->second];
    auto& to = ++role.speeches % test_every == 0 ? role.test : role.train;
    if (!to.empty())
      to += token_of(' ');
    std::transform(speech.begin() + static_cast<std::ptrdiff_t>(second) + 1, speech.end(), std::back_inserter(to),
                   token_of);
    begin = end + 1;
  }
  return roles;
}

using class_of_token = std::array<std::int32_t, alphabet.size()>;

/// Numbers the target characters of training rows by descending frequency. Equal frequencies are in the order of the
/// alphabet.
class_of_token classes_of(const std::vector<role_text>& roles) {
  std::array<std::int64_t, alphabet.size()> counts{};
  for (const auto& role : roles)
    for (auto at = static_cast<std::size_t>(window); at < role.train.size(); ++at)
      ++counts[static_cast<std::size_t>(role.train[at])];
  std::array<std::size_t, alphabet.size()> order{};
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return counts[a] > counts[b]; });
  class_of_token ranks{};
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    ranks[order[rank]] = static_cast<std::int32_t>(rank);
  return ranks;
}

/// Makes one row for every character with a full window before it, role by role. Rows beyond the limits are not
/// created, because there are four million rows in total.
image_table windows_of(const std::vector<role_text>& roles, std::string role_text::*split, const class_of_token& ranks,
                       row_limits limits) {
  row_filter filter(limits, static_cast<std::int64_t>(alphabet.size()));
  image_table table;
  std::vector<const char*> begins;
  std::int64_t row = 0;
  for (const auto& role : roles) {
    const auto& text = role.*split;
    for (auto at = static_cast<std::size_t>(window); at < text.size() && !filter.done(); ++at, ++row) {
      const auto label = ranks[static_cast<std::size_t>(text[at])];
      if (!filter.keep(label))
        continue;
      begins.push_back(text.data() + at - window);
      table.labels.push_back(label);
      table.file_rows.push_back(row);
    }
  }
  if (row == table.size()) // no row was removed, so numbers are not needed
    table.file_rows.clear();
  table.images = new_tensor({table.size(), 1, 1, window}, at::kInt);
  auto* token = table.images.mutable_data_ptr<std::int32_t>();
  for (const auto* begin : begins)
    token = std::transform(begin, begin + window, token, [](char value) { return std::int32_t{value}; });
  return table;
}

using roles_reader = void (*)(const std::vector<role_text>& roles, const data_section& data, raw_data& to);

void add_windows(const std::vector<role_text>& roles, const data_section& data, raw_data& to) {
  const auto ranks = classes_of(roles);
  to.name = "shakespeare";
  to.train = windows_of(roles, &role_text::train, ranks, train_limits(data));
  to.test = windows_of(roles, &role_text::test, ranks, test_limits(data));
  to.classes = static_cast<std::int64_t>(alphabet.size());
}

/// Cuts the text of each role into rows; the rest of less than a row is dropped.
/// @param domains number of each role's play
image_table rows_of(const std::vector<role_text>& roles, std::string role_text::*split,
                    const std::vector<std::int32_t>& domains, row_limits limits) {
  row_filter filter(limits, std::ssize(roles));
  image_table table;
  std::string tokens;
  std::int64_t row = 0;
  for (std::size_t role = 0; role < roles.size(); ++role) {
    const auto& text = roles[role].*split;
    for (std::size_t at = 0; at + window <= text.size(); at += window, ++row) {
      if (!filter.keep(static_cast<std::int32_t>(role), domains[role]))
        continue;
      tokens.append(text, at, window);
      table.labels.push_back(static_cast<std::int32_t>(role));
      table.domains.push_back(domains[role]);
      table.file_rows.push_back(row);
    }
  }
  if (row == table.size()) // no row was removed
    table.file_rows.clear();
  table.images = new_tensor({table.size(), 1, 1, window}, at::kInt);
  std::transform(tokens.begin(), tokens.end(), table.images.mutable_data_ptr<std::int32_t>(),
                 [](char value) { return std::int32_t{value}; });
  return table;
}

/// Adds the roles that have a row in both splits.
void add_roles(const std::vector<role_text>& all, const data_section& data, raw_data& to) {
  std::vector<role_text> roles;
  std::vector<std::int32_t> domains;
  for (const auto& role : all) {
    if (std::min(role.train.size(), role.test.size()) < static_cast<std::size_t>(window))
      continue;
    const auto known = std::find(to.domain_names.begin(), to.domain_names.end(), role.play);
    domains.push_back(static_cast<std::int32_t>(known - to.domain_names.begin()));
    if (known == to.domain_names.end())
      to.domain_names.emplace_back(role.play);
    to.class_names.push_back(fmt::format("{} {}", role.play, role.name));
    roles.push_back(role);
  }
  to.name = "shakespeare-roles";
  to.train = rows_of(roles, &role_text::train, domains, train_limits(data));
  to.test = rows_of(roles, &role_text::test, domains, test_limits(data));
  to.classes = std::ssize(roles);
}

expected<raw_data> load_shakespeare(const data_section& data, const std::vector<std::filesystem::path>& roots,
                                    roles_reader add_rows) {
  const auto files = find_files(shakespeare_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  const auto content = content_of(files->front());
  if (!content)
    return tl::unexpected(content.error());
  const auto roles = roles_in(*content, files->front());
  if (!roles)
    return tl::unexpected(roles.error());
  raw_data raw{.tokens = static_cast<std::int64_t>(alphabet.size()), .mean = {0.0}, .deviation = {1.0}};
  add_rows(*roles, data, raw);
  if (raw.train.size() == 0 || raw.test.size() == 0)
    return failed(files->front().string(), "no role has more than 80 characters in either split; expected all plays");
  return raw;
}

const source_registration shakespeare_line{
    {.name = "shakespeare",
     .summary = "lines of 1,352 roles: 3,853,057 + 321,077 windows of 80 characters (every tenth speech is a test "
                "speech), 80 classes by the next character, the most frequent first; no public download in this form",
     .files = shakespeare_files,
     .load = [](const data_section& data, const auto& roots,
                std::uint64_t) { return load_shakespeare(data, roots, add_windows); },
     .holds_tokens = true}};

const source_registration shakespeare_roles_line{
    {.name = "shakespeare-roles",
     .summary = "lines of 478 roles in 37 domains (plays): 42,409 + 4,267 rows of 80 characters for language models, "
                "classes are roles; row limits apply per domain; no public download in this form",
     .files = shakespeare_files,
     .load = [](const data_section& data, const auto& roots,
                std::uint64_t) { return load_shakespeare(data, roots, add_roles); },
     .holds_tokens = true,
     .has_domains = true}};

} // namespace
} // namespace mneme
