#include "runtime/scenario/layers.hpp"
#include "runtime/options/units.hpp"
#include <algorithm>
#include <fstream>
#include <set>
namespace mneme {
namespace {

namespace fs = std::filesystem;
const std::string no_such_file = "no such file";
constexpr std::size_t file_bytes_max = 16 << 20; // a scenario lists a number per client at most

/// The whole text, or why there is none.
tl::expected<std::string, std::string> content_of(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored))
    return tl::unexpected<std::string>(no_such_file);
  if (fs::is_directory(file, ignored))
    return tl::unexpected<std::string>("a folder; expected a scenario file in TOML");
  std::ifstream in(file, std::ios::binary);
  if (!in)
    return tl::unexpected<std::string>("cannot be opened; check its permissions");
  std::string text(file_bytes_max + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad())
    return tl::unexpected<std::string>("cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > file_bytes_max)
    return tl::unexpected<std::string>("larger than 16 MiB; expected a scenario file in TOML");
  return text;
}

/// "; did you mean 'x.toml'?" for a file that is not there but has a neighbour of nearly its name.
std::string neighbour_hint(const fs::path& missing) {
  std::vector<std::string> names;
  std::error_code failed;
  const auto folder = missing.has_parent_path() ? missing.parent_path() : fs::path(".");
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".toml")
      names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  const auto meant = nearest(missing.filename().string(), names);
  return meant.empty() ? "" : "; did you mean '" + (missing.parent_path() / meant).string() + "'?";
}

/// toml++ says "Error while parsing key-value pair: cannot redefine existing integer 'count'".
problem syntax_problem(const std::string& source, const toml::parse_error& error) {
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

class layer_reader {
public:
  /// Bases first, so that they are lower. `said` is the extends key that names the file, if one does.
  void read_file(const fs::path& named, const problem* said) {
    const auto same = fs::weakly_canonical(fs::absolute(named));
    if (const auto again = std::find(open_.begin(), open_.end(), same); again != open_.end())
      return out_.problems.push_back({said->at, said->text + ": " + cycle_text(again - open_.begin(), named)});
    if (!done_.insert(same).second)
      return;
    const auto text = content_of(named);
    if (!text)
      return refuse(named, text.error(), said);
    auto read = parsed_layer(named.string(), *text, out_.problems);
    read.folder = fs::absolute(named).parent_path();
    open_.push_back(same);
    names_.push_back(named.string());
    read_bases(read, named.parent_path());
    open_.pop_back();
    names_.pop_back();
    out_.layers.push_back(std::move(read));
  }

  void override_with(const std::string& name, const std::string& value) {
    const auto dot = name.find('.');
    const auto leaf = dot == std::string::npos ? name : name.substr(dot + 1);
    layer one{.source = "--set", .folder = fs::current_path(), .has_lines = false};
    auto& target = dot == std::string::npos
                       ? one.values
                       : *one.values.insert(name.substr(0, dot), toml::table{}).first->second.as_table();
    if (name == "extends")
      return out_.problems.push_back(
          {whole("--set"), "extends = " + in_quotes(value) + ": expected in a scenario file only"});
    put(target, leaf, value);
    out_.layers.push_back(std::move(one));
  }

  layer_stack take() { return std::move(out_); }

private:
  /// A base is refused where it is named, the scenario itself by its name.
  void refuse(const fs::path& named, const std::string& why, const problem* said) {
    problem found;
    found.at = said ? said->at : whole(named.string());
    found.text = (said ? said->text + ": " + why + " '" + named.string() + "'" : why) +
                 (why == no_such_file ? neighbour_hint(named) : "");
    out_.problems.push_back(std::move(found));
  }

  /// `value` as TOML if it is that, else as a string.
  static void put(toml::table& into, const std::string& leaf, const std::string& value) {
    try {
      auto parsed = toml::parse("value = " + value);
      if (parsed.size() == 1) {
        into.insert(leaf, std::move(*parsed.get("value")));
        return;
      }
    } catch (const toml::parse_error&) {
      // a bare string
    }
    into.insert(leaf, value);
  }

  /// A string, or a list of strings of which later ones override.
  void read_bases(const layer& from, const fs::path& folder) {
    const auto* extends = from.values.get("extends");
    if (!extends)
      return;
    const auto* list = extends->as_array();
    const auto read_one = [&](const toml::node& node) {
      const auto* base = node.as_string();
      const problem said{place_in(from, node.source()), "extends = " + (base ? in_quotes(base->get()) : "...")};
      if (!base || base->get().empty())
        return out_.problems.push_back(
            {said.at, "extends: expected a path of a scenario file, as in \"../base/x.toml\""});
      read_file((folder / base->get()).lexically_normal(), &said);
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
  std::set<fs::path> done_;        // each file is one layer, however many extend it
  std::vector<fs::path> open_;     // the files that wait for their bases, canonical
  std::vector<std::string> names_; // the same as the user would name them
};

} // namespace

place whole(std::string source) {
  place at;
  at.source = std::move(source);
  return at;
}

std::string shown(const place& at) {
  return at.line == 0 ? at.source : at.source + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

place place_in(const layer& from, const toml::source_region& region) {
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

layer parsed_layer(std::string source, const std::string& text, std::vector<problem>& problems) {
  layer out{.source = std::move(source)};
  try {
    out.values = toml::parse(text);
  } catch (const toml::parse_error& error) {
    problems.push_back(syntax_problem(out.source, error));
  }
  return out;
}

std::string title_of(const fs::path& file) {
  const auto text = content_of(file);
  std::vector<problem> ignored;
  return text ? parsed_layer(file.string(), *text, ignored).values["title"].value_or(std::string{}) : std::string{};
}

} // namespace mneme
