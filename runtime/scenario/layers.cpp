#include "runtime/scenario/layers.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/unquoted_strings.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
namespace mneme {
namespace {

namespace fs = std::filesystem;
const std::string no_such_file = "no such file";
constexpr std::size_t file_bytes_max = 16 << 20; // enough, because a scenario lists at most one number per client
constexpr std::size_t open_max = 1'000;          // longest chain of `extends`

/// Reads the whole file. Returns the reason if the file cannot be read.
tl::expected<std::string, std::string> content_of(const fs::path& file) {
  std::error_code unknown;
  const auto status = fs::status(file, unknown);
  if (status.type() == fs::file_type::not_found)
    return tl::unexpected<std::string>(no_such_file);
  if (status.type() == fs::file_type::none)
    return tl::unexpected<std::string>("is not accessible: " + unknown.message());
  if (const auto kind = special_kind(file); !kind.empty())
    return tl::unexpected<std::string>("is " + kind + "; expected an ordinary file, a scenario in TOML");
  const auto bytes = fs::file_size(file, unknown);
  if (!unknown && bytes > file_bytes_max)
    return tl::unexpected<std::string>("larger than 16 MiB; expected a scenario file in TOML");
  auto in = open_stream(file);
  if (unknown || !in)
    return tl::unexpected<std::string>("cannot be opened; check its permissions");
  std::string text(bytes, '\0');
  in->read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in->bad())
    return tl::unexpected<std::string>("cannot be read");
  text.resize(static_cast<std::size_t>(in->gcount()));
  return text;
}

/// Suggests a similar file name in the missing file's folder: "; did you mean 'x.toml'?". Returns "" if there is none.
std::string neighbor_hint(const fs::path& missing) {
  std::vector<std::string> names;
  std::error_code failed;
  const auto folder = missing.has_parent_path() ? missing.parent_path() : fs::path(".");
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".toml")
      names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  const auto meant = closest_match(missing.filename().string(), names);
  return meant.empty() ? "" : "; did you mean '" + (missing.parent_path() / meant).string() + "'?";
}

constexpr std::int64_t key_parts_max = 8;

/// Location of a key with more parts than any scenario needs, or nullopt. For such a key, toml++ would recursively
/// build and destroy one nested table per part.
std::optional<place> key_too_deep(std::string_view text) {
  place at{.source = {}, .line = 1, .column = 0};
  std::int64_t parts = 1;
  std::string_view closing; // text that closes the string or comment at this position
  while (!text.empty()) {
    const char next = text.front();
    std::size_t taken = 1;
    if (!closing.empty()) {
      const bool escape = next == '\\' && closing.front() == '"' && text.size() > 1;
      const bool line_ends = next == '\n' && closing.size() == 1; // a line break in such a string is an error
      const bool closes = !escape && (text.starts_with(closing) || line_ends);
      taken = escape ? 2 : closes && !line_ends ? closing.size() : 1;
      if (closes)
        closing = {};
    } else if (next == '#') {
      closing = "\n";
    } else if (next == '"' || next == '\'') {
      const std::string_view three = next == '"' ? R"(""")" : "'''";
      closing = text.starts_with(three) ? three : three.substr(0, 1);
      taken = closing.size();
    } else if (next == '.') {
      ++parts;
    } else if (std::string_view("\n=,{}[]").find(next) != std::string_view::npos) {
      parts = 1;
    }
    ++at.column;
    if (parts > key_parts_max)
      return at;
    for (const char passed : text.substr(0, taken)) {
      if (passed != '\n')
        continue;
      ++at.line;
      at.column = 0;
      parts = 1;
    }
    text.remove_prefix(taken);
  }
  return std::nullopt;
}

/// The only call of the TOML parser; converts its exception to an error.
tl::expected<toml::table, toml::parse_error> toml_of(const std::string& text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return tl::unexpected(error);
  }
}

/// Shortens parser messages such as "Error while parsing key-value pair: cannot redefine existing integer 'count'".
scenario_error syntax_problem(const std::string& source, const toml::parse_error& error) {
  std::string text(error.description());
  constexpr std::string_view lead = "Error while parsing ";
  if (text.starts_with(lead))
    text = "in a " + text.substr(lead.size());
  if (text.find("cannot redefine") != std::string::npos)
    text += "; give each key and section once";
  if (text.find("could not determine value type") != std::string::npos)
    text += "; a string needs quotes";
  const auto& at = error.source().begin;
  return {{source, static_cast<std::int64_t>(at.line), static_cast<std::int64_t>(at.column)},
          "not valid TOML: " + text};
}

constexpr int bare_words_max = 100; // limit per file, because the file is parsed again after each

/// Parses TOML. Puts each bare value in quotes and reports it, so that later errors are found, too. Stops at the first
/// error of another kind.
toml::table parse_text(const std::string& source, std::string text, std::vector<scenario_error>& problems) {
  std::map<std::int64_t, std::int64_t> added; // number of characters inserted into each line
  for (int fixed = 0;; ++fixed) {
    auto read = toml_of(text);
    if (read)
      return std::move(*read);
    const auto word = find_unquoted_string(text, static_cast<std::int64_t>(read.error().source().begin.line));
    if (!word || fixed == bare_words_max) {
      problems.push_back(syntax_problem(source, read.error()));
      return {};
    }
    auto& shift = added[word->line];
    const char* const meant_kind = word->is_number              ? "number"
                                   : word->value.front() == '"' ? "value without quotes"
                                                                : "value";
    problems.push_back(
        {{source, word->line, word->column - shift},
         fmt::format("not valid TOML: {} is no {}; write {}", word->written, meant_kind, word->corrected_line),
         word->is_number ? problem_kind::spelling : problem_kind::other});
    text.replace(word->begin, word->end - word->begin, word->value);
    shift += static_cast<std::int64_t>(word->value.size()) - static_cast<std::int64_t>(word->written.size());
  }
}

class layer_reader {
public:
  /// Reads the bases of a file, which become lower layers, and then the file. @param origin `extends` entry that names
  /// the file, or null
  void read_file(const fs::path& named, const scenario_error* origin) {
    if (!special_kind(named).empty()) // a pipe, linked in /dev/fd, has no canonical path
      return refuse(named, content_of(named).error(), origin);
    std::error_code unknown;
    const auto same = fs::weakly_canonical(fs::absolute(named), unknown);
    if (unknown)
      return refuse(named, "is not accessible: " + unknown.message(), origin);
    if (open_.size() == open_max)
      return refuse(named, fmt::format("the chain of `extends` exceeds {} files before", open_max), origin);
    if (const auto again = std::find(open_.begin(), open_.end(), same); again != open_.end())
      return out_.problems.push_back({origin->at, origin->text + ": " + cycle_text(again - open_.begin(), named)});
    if (!done_.insert(same).second)
      return;
    const auto text = content_of(named);
    if (!text)
      return refuse(named, text.error(), origin);
    auto read = parse_layer(named.string(), *text, out_.problems);
    read.folder = fs::absolute(named).parent_path();
    open_.push_back(same);
    names_.push_back(named.string());
    read_bases(read, named.parent_path());
    open_.pop_back();
    names_.pop_back();
    out_.layers.push_back(std::move(read));
  }

  void read_offered(const std::string& text) {
    auto read = parse_layer("the offered scenario", text, out_.problems);
    read.is_received = true;
    if (const auto* extends = read.values.get("extends"))
      out_.problems.push_back(
          {place_in(read, extends->source()),
           "extends: not allowed in a scenario received from another process; expected no such key"});
    out_.layers.push_back(std::move(read));
  }

  void override_with(const std::string& name, const std::string& value) {
    const auto dot = name.find('.');
    const auto leaf = dot == std::string::npos ? name : name.substr(dot + 1);
    scenario_layer source{.source = "--set", .folder = fs::current_path(), .has_lines = false};
    auto& target = dot == std::string::npos
                       ? source.values
                       : *source.values.insert(name.substr(0, dot), toml::table{}).first->second.as_table();
    if (name == "extends")
      return out_.problems.push_back(
          {whole("--set"), "extends = " + quote_text(value) + ": expected in a scenario file only"});
    put(target, leaf, value);
    out_.layers.push_back(std::move(source));
  }

  layer_stack take() { return std::move(out_); }

private:
  /// Reports an unreadable base at the `extends` key that names it, and an unreadable scenario by its file name.
  void refuse(const fs::path& named, const std::string& reason, const scenario_error* origin) {
    scenario_error missing;
    missing.at = origin ? origin->at : whole(named.string());
    missing.text = (origin ? origin->text + ": " + reason + " '" + named.string() + "'" : reason) +
                   (reason == no_such_file ? neighbor_hint(named) : "");
    out_.problems.push_back(std::move(missing));
  }

  /// Inserts `value` as TOML if it can be parsed, otherwise as a string.
  static void put(toml::table& into, const std::string& leaf, const std::string& value) {
    auto parsed = key_too_deep(value) ? toml::table{} : toml_of("value = " + value).value_or(toml::table{});
    if (parsed.size() == 1)
      into.insert(leaf, std::move(*parsed.get("value")));
    else
      into.insert(leaf, value);
  }

  /// Reads `extends`: a string, or a list of strings in which later files override earlier ones.
  void read_bases(const scenario_layer& from, const fs::path& folder) {
    const auto* extends = from.values.get("extends");
    if (!extends)
      return;
    const auto* list = extends->as_array();
    const auto read_one = [&](const toml::node& node) {
      const auto* base = node.as_string();
      const scenario_error origin{place_in(from, node.source()),
                                  "extends = " + (base ? quote_text(base->get()) : "...")};
      if (!base || base->get().empty())
        return out_.problems.push_back(
            {origin.at, "extends: expected a path of a scenario file, as in \"../base/x.toml\""});
      read_file((folder / base->get()).lexically_normal(), &origin);
    };
    if (!list)
      return read_one(*extends);
    for (const auto& node : *list)
      read_one(node);
  }

  std::string cycle_text(std::ptrdiff_t from, const fs::path& last) const {
    std::string text = "a cycle: ";
    for (auto i = static_cast<std::size_t>(from); i < names_.size(); ++i)
      text += names_[i] + " -> ";
    return text + last.string() + "; a scenario cannot extend itself";
  }

  layer_stack out_;
  std::set<fs::path> done_;        // a file becomes one layer, even if several files extend it
  std::vector<fs::path> open_;     // canonical paths of the files whose bases are being read
  std::vector<std::string> names_; // paths of the same files, as the user gave them
};

} // namespace

place whole(std::string source) {
  place at;
  at.source = std::move(source);
  return at;
}

std::string place_text(const place& at) {
  return at.line == 0 ? at.source : at.source + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

place place_in(const scenario_layer& from, const toml::source_region& region) {
  if (!from.has_lines)
    return whole(from.source);
  return {from.source, static_cast<std::int64_t>(region.begin.line), static_cast<std::int64_t>(region.begin.column)};
}

layer_stack read_layers(const fs::path& file, const overrides& over) {
  layer_reader reader;
  reader.read_file(file, nullptr);
  for (const auto& [name, value] : over)
    reader.override_with(name, value);
  return reader.take();
}

layer_stack read_received_layers(const std::string& text, const overrides& over) {
  layer_reader reader;
  reader.read_offered(text);
  for (const auto& [name, value] : over)
    reader.override_with(name, value);
  return reader.take();
}

scenario_layer parse_layer(std::string source, const std::string& text, std::vector<scenario_error>& problems) {
  scenario_layer out{.source = std::move(source)};
  if (const auto nested = key_too_deep(text)) {
    problems.push_back({{out.source, nested->line, nested->column},
                        fmt::format("a key with more than {} parts; expected a section and a key", key_parts_max)});
    return out;
  }
  out.values = parse_text(out.source, text, problems);
  return out;
}

std::string title_of(const fs::path& file) {
  const auto text = content_of(file);
  std::vector<scenario_error> ignored;
  return text ? parse_layer(file.string(), *text, ignored).values["title"].value_or(std::string{}) : std::string{};
}

} // namespace mneme
