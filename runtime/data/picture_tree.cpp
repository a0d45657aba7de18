#include "runtime/data/picture_tree.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::size_t tree_classes_max = 100'000;

/// What lies in one folder, by name; hidden files and folders are left out.
struct folder_content {
  std::vector<path> folders{}, pictures{}, other_pictures{};
};

bool ends_with_one_of(const path& file, std::initializer_list<std::string_view> endings) {
  auto ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

expected<folder_content> folder_content_of(const path& folder) {
  folder_content content;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto& at = entry->path();
    std::error_code ignored;
    if (at.filename().string().starts_with('.'))
      continue;
    if (entry->is_directory(ignored))
      content.folders.push_back(at);
    else if (ends_with_one_of(at, {".png", ".jpg", ".jpeg"}))
      content.pictures.push_back(at);
    else if (ends_with_one_of(at, {".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".heic", ".avif"}))
      content.other_pictures.push_back(at);
  }
  if (error)
    return failed(folder.string(), fmt::format("cannot be read: {}", error.message()));
  for (auto* paths : {&content.folders, &content.pictures, &content.other_pictures})
    std::sort(paths->begin(), paths->end());
  return content;
}

/// Domains (one without a name where there are none) and their classes, each with its pictures.
using listed_classes = std::map<std::string, std::vector<path>>;
using listed_domains = std::map<std::string, listed_classes>;

class tree_reader {
public:
  diagnostics wrong;

  listed_domains part(const path& root) {
    listed_domains domains;
    const auto top = looked_into(root);
    if (!top)
      return domains;
    no_pictures_beside(root, *top);
    if (top->folders.empty()) {
      say(root, "holds no folders; expected one for each class, with its PNG and JPEG files");
      return domains;
    }
    std::size_t deeper = 0;
    std::vector<folder_content> contents;
    for (const auto& folder : top->folders) {
      const auto content = looked_into(folder);
      contents.push_back(content ? *content : folder_content{});
      deeper += !contents.back().folders.empty();
    }
    if (deeper == 0) {
      for (std::size_t i = 0; i < contents.size(); ++i)
        add_class(top->folders[i], contents[i], domains[""]);
      return domains;
    }
    for (std::size_t i = 0; i < contents.size(); ++i)
      add_domain(top->folders[i], contents[i], domains);
    return domains;
  }

  void say(const path& place, std::string text) {
    if (wrong.size() < own_diagnostics_max)
      wrong.push_back({place.string(), std::move(text)});
  }

private:
  std::optional<folder_content> looked_into(const path& folder) {
    auto content = folder_content_of(folder);
    if (content)
      return std::move(*content);
    append(wrong, content.error());
    return std::nullopt;
  }
  void no_pictures_beside(const path& folder, const folder_content& content) {
    if (!content.pictures.empty())
      say(content.pictures.front(),
          fmt::format("lies beside the folders of {}; expected pictures in the folder of their "
                      "class only",
                      folder.string()));
  }
  void add_class(const path& folder, const folder_content& content, listed_classes& to) {
    if (!content.folders.empty())
      say(content.folders.front(), "lies within the folder of a class; expected pictures there only");
    if (!content.other_pictures.empty())
      say(content.other_pictures.front(), "is a picture of a kind that is not read; expected PNG or JPEG");
    if (content.pictures.empty())
      say(folder, "holds no PNG or JPEG files; expected some of every class");
    to[folder.filename().string()] = content.pictures;
  }
  void add_domain(const path& folder, const folder_content& content, listed_domains& to) {
    no_pictures_beside(folder, content);
    if (content.folders.empty())
      say(folder, "holds no folders, and others beside it do: they are taken for domains; expected a folder for each "
                  "class in each of them");
    for (const auto& inner : content.folders)
      if (const auto pictures = looked_into(inner))
        add_class(inner, *pictures, to[folder.filename().string()]);
  }
};

std::set<std::string> classes_in(const listed_domains& part) {
  std::set<std::string> names;
  for (const auto& [domain, classes] : part)
    for (const auto& [name, pictures] : classes)
      names.insert(name);
  return names;
}

std::set<std::string> domains_in(const listed_domains& part) {
  std::set<std::string> names;
  for (const auto& [domain, classes] : part)
    if (!domain.empty())
      names.insert(domain);
  return names;
}

/// Names that only one of the parts has.
void compare_names(const std::set<std::string>& train, const std::set<std::string>& test, const path& root,
                   const char* noun, tree_reader& to) {
  for (const auto& [here, there, part, other] :
       {std::tuple{&train, &test, "test", "train"}, std::tuple{&test, &train, "train", "test"}})
    for (const auto& name : *here)
      if (!there->contains(name))
        to.say(root / part, fmt::format("has no {} '{}', which {} has; expected the same", noun, name, other));
}

std::int32_t place_in(const std::vector<std::string>& names, const std::string& name) {
  const auto place = std::lower_bound(names.begin(), names.end(), name);
  return place == names.end() ? 0 : static_cast<std::int32_t>(place - names.begin());
}

std::vector<photograph> numbered(const listed_domains& part, const own_classes& classes) {
  std::vector<photograph> photographs;
  for (const auto& [domain, by_class] : part)
    for (const auto& [name, pictures] : by_class)
      for (const auto& file : pictures)
        photographs.push_back({file, place_in(classes.names, name), place_in(classes.domains, domain)});
  return photographs;
}

} // namespace

expected<path> picture_root(const data_section& data, const std::vector<path>& roots) {
  const path below(data.folder);
  if (below.is_absolute() || std::any_of(below.begin(), below.end(), [](const path& part) { return part == ".."; }))
    return failed("data.folder", fmt::format("'{}' lies elsewhere; expected the name of a folder below data.root, or "
                                             "below an entry of $MNEME_DATA",
                                             data.folder));
  if (data.root.empty() && below.empty())
    return failed("data.root",
                  "names no folder; expected data.root = \"pictures\", or data.folder, the name of one below "
                  "an entry of $MNEME_DATA (nodes look for it below their own)");
  std::vector<std::string> searched;
  for (const auto& root : roots) {
    std::error_code ignored;
    const auto folder = below.empty() ? root : root / below;
    if (std::filesystem::is_directory(folder, ignored))
      return folder;
    searched.push_back(folder.string());
  }
  return failed(below.empty() ? "data.root" : "data.folder",
                fmt::format("there is no such folder: {}", fmt::join(searched, ", ")));
}

own_part part_of(const std::vector<photograph>& photographs, bool has_domains) {
  own_part part;
  for (const auto& picture : photographs) {
    part.labels.push_back(picture.label);
    if (has_domains)
      part.domains.push_back(picture.domain);
  }
  return part;
}

digest128 names_and_sizes(const data_section& data, const std::vector<path>& roots) {
  run_digest digest;
  const auto root = picture_root(data, roots);
  const auto tree = root ? list_pictures(*root) : tl::unexpected(root.error());
  if (!tree)
    return digest.value();
  for (const auto* part : {&tree->train, &tree->test})
    for (const auto& picture : *part) {
      std::error_code ignored;
      const auto name = picture.file.lexically_relative(tree->root).generic_string();
      digest.add(digest_of(std::as_bytes(std::span(name))));
      digest.add(std::filesystem::file_size(picture.file, ignored));
    }
  return digest.value();
}

expected<picture_tree> list_pictures(const path& root) {
  std::error_code ignored;
  const auto is_folder = [&](const char* name) { return std::filesystem::is_directory(root / name, ignored); };
  const bool has_train = is_folder("train"), has_test = has_train && is_folder("test");
  tree_reader reader;
  const auto train = reader.part(has_train ? root / "train" : root);
  const auto test = has_test ? reader.part(root / "test") : listed_domains{};
  const auto classes = classes_in(train), domains = domains_in(train);
  if (reader.wrong.empty() && has_test) {
    compare_names(classes, classes_in(test), root, "class", reader);
    compare_names(domains, domains_in(test), root, "domain", reader);
  }
  if (classes.size() > tree_classes_max)
    reader.say(root, fmt::format("holds {} classes; expected at most {}", classes.size(), tree_classes_max));
  picture_tree tree{.root = root,
                    .classes = {.where = root.string(),
                                .count = std::ssize(classes),
                                .names = {classes.begin(), classes.end()},
                                .domains = {domains.begin(), domains.end()}}};
  append(reader.wrong, wrong_names(tree.classes.names, root.string()));
  append(reader.wrong, wrong_names(tree.classes.domains, root.string()));
  if (!reader.wrong.empty())
    return tl::unexpected(std::move(reader.wrong));
  tree.train = numbered(train, tree.classes);
  tree.test = numbered(test, tree.classes);
  return tree;
}

} // namespace mneme
