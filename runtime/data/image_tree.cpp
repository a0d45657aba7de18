#include "runtime/data/image_tree.hpp"
#include "runtime/data/image_file.hpp"
#include "runtime/data/part_folders.hpp"
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

/// For each domain, its classes and their images. The domain's name is empty if the tree has no domains.
using listed_classes = std::map<std::string, std::vector<path>>;
using listed_domains = std::map<std::string, listed_classes>;

/// Collects ignored files or folders, so that one warning reports all of them.
struct left_out {
  std::size_t count = 0;
  std::vector<std::string> first{};

  void add(const std::vector<path>& paths, const path& root) {
    constexpr std::size_t named_max = 3;
    count += paths.size();
    for (std::size_t i = 0; i < paths.size() && first.size() < named_max; ++i)
      first.push_back(paths[i].lexically_relative(root).generic_string());
  }
  /// Adds the warning "3 KIND are left out: a, b, c". @param kind noun in the plural
  void warn(diagnostics& to, const path& root, const char* kind) const {
    if (count > 0)
      to.push_back({root.string(), fmt::format("{} {} are left out: {}{}", count, kind, fmt::join(first, ", "),
                                               count > first.size() ? ", ..." : "")});
  }
};

/// Lists the parts of a tree and collects all errors.
class tree_reader {
public:
  explicit tree_reader(path root) : root_(std::move(root)) {}
  diagnostics errors;

  /// Lists one part. @param part its folder, or the root of a tree without parts
  listed_domains read_part(const path& part) {
    listed_domains domains;
    const auto top = list(part);
    if (!top)
      return domains;
    if (top->folders.empty()) {
      report_no_classes(part, *top);
      return domains;
    }
    report_misplaced_images(part, *top);
    std::vector<folder_content> contents;
    for (const auto& folder : top->folders) {
      auto content = list(folder);
      contents.push_back(content ? std::move(*content) : folder_content{});
    }
    const bool has_domains = std::any_of(contents.begin(), contents.end(),
                                         [](const folder_content& content) { return !content.folders.empty(); });
    for (std::size_t i = 0; i < contents.size(); ++i)
      if (has_domains)
        add_domain(top->folders[i], contents[i], domains);
      else
        add_class(top->folders[i], contents[i], domains[""]);
    return domains;
  }

  /// Lists a folder and records its ignored entries.
  std::optional<folder_content> list(const path& folder) {
    auto content = list_folder(folder);
    if (!content) {
      append(errors, content.error());
      return std::nullopt;
    }
    record_left_out(*content);
    return std::move(*content);
  }

  /// Counts ignored files and folders, for warnings().
  void record_left_out(const folder_content& content) {
    other_files_.add(content.other_files, root_);
    ignored_folders_.add(content.ignored_folders, root_);
  }

  void report(const path& place, std::string text) {
    if (errors.size() < own_diagnostics_max)
      errors.push_back({place.string(), std::move(text)});
  }

  [[nodiscard]] diagnostics warnings() const {
    diagnostics texts;
    other_files_.warn(texts, root_, "files without the name of an image");
    ignored_folders_.warn(texts, root_, "hidden or system folders");
    return texts;
  }

private:
  void report_no_classes(const path& part, const folder_content& content) {
    if (content.images.empty()) {
      report(part, "holds no folders; expected one for each class, with its PNG and JPEG files");
      return;
    }
    const bool is_test = part != root_ && part_role_of(folder_name(part)) != part_role::train;
    report(part, fmt::format("holds {} images and no folders of classes; expected {}{}", content.images.size(),
                             (part / "CLASS" / content.images.front().filename()).string(),
                             is_test ? ", or neither of them and data.test_share = 0.2, which draws a test part" : ""));
  }
  void report_misplaced_images(const path& folder, const folder_content& content) {
    for (const auto* images : {&content.images, &content.unsupported_images})
      if (!images->empty())
        report(images->front(),
               fmt::format("is next to the folders of {}; expected images in the folders of their classes only",
                           folder.string()));
  }
  void add_class(const path& folder, const folder_content& content, listed_classes& to) {
    if (!content.folders.empty())
      report(content.folders.front(), "is a folder within the folder of a class; expected only images there");
    if (!content.unsupported_images.empty())
      report(content.unsupported_images.front(),
             fmt::format("is {}; expected PNG or JPEG{}", unsupported_format(content.unsupported_images.front()),
                         content.unsupported_images.size() > 1 ? fmt::format(", also of {} more files in this folder",
                                                                             content.unsupported_images.size() - 1)
                                                               : ""));
    else if (content.images.empty())
      report(folder, "holds no PNG or JPEG files; expected some of every class");
    to[folder_name(folder)] = content.images;
  }
  void add_domain(const path& folder, const folder_content& content, listed_domains& to) {
    report_misplaced_images(folder, content);
    if (content.folders.empty())
      report(folder, "holds no folders, but its siblings do and are read as domains; expected a folder for each class "
                     "in each of them");
    if (report_inner_parts(folder, content))
      return;
    for (const auto& inner : content.folders)
      if (const auto images = list(inner))
        add_class(inner, *images, to[folder_name(folder)]);
  }
  /// Reports an error and returns true if all folders have names of parts (DOMAIN/train/CLASS or CLASS/train).
  bool report_inner_parts(const path& folder, const folder_content& content) {
    const bool are_parts =
        !content.folders.empty() && std::all_of(content.folders.begin(), content.folders.end(), [](const path& inner) {
          return part_role_of(folder_name(inner)) != part_role::none;
        });
    if (are_parts)
      report(content.folders.front(),
             fmt::format("is named like a part of the data, but is below '{}'; expected parts at the top, as in {}, or "
                         "data.root = \"{}\" for the parts of this folder alone",
                         folder_name(folder), (root_ / "train" / folder_name(folder)).string(), folder.string()));
    return are_parts;
  }

  path root_;
  left_out other_files_{}, ignored_folders_{};
};

std::set<std::string> classes_in(const listed_domains& part) {
  std::set<std::string> names;
  for (const auto& [domain, classes] : part)
    for (const auto& [name, paths] : classes)
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

/// Reports names that only one of the parts contains.
void compare_names(const std::set<std::string>& train, const std::set<std::string>& test, const part_folders& parts,
                   const char* noun, tree_reader& to) {
  for (const auto& [names, others, folder, other] :
       {std::tuple{&train, &test, &parts.test, &parts.train}, std::tuple{&test, &train, &parts.train, &parts.test}})
    for (const auto& name : *names)
      if (!others->contains(name))
        to.report(*folder,
                  fmt::format("has no {} '{}', which {} has; expected the same", noun, name, folder_name(*other)));
}

std::int32_t place_in(const std::vector<std::string>& names, const std::string& name) {
  const auto place = std::lower_bound(names.begin(), names.end(), name);
  return place == names.end() ? 0 : static_cast<std::int32_t>(place - names.begin());
}

std::vector<image_entry> numbered(const listed_domains& part, const user_classes& classes) {
  std::vector<image_entry> entries;
  for (const auto& [domain, by_class] : part)
    for (const auto& [name, paths] : by_class)
      for (const auto& file : paths)
        entries.push_back({file, place_in(classes.names, name), place_in(classes.domains, domain)});
  return entries;
}

} // namespace

expected<path> image_root(const data_section& data, const std::vector<path>& roots) {
  const path below(data.folder);
  if (below.is_absolute() || std::any_of(below.begin(), below.end(), [](const path& part) { return part == ".."; }))
    return failed("data.folder", fmt::format("'{}' is not below the data; expected the name of a folder below "
                                             "data.root, or below an entry of $MNEME_DATA",
                                             data.folder));
  if (data.root.empty() && below.empty())
    return failed("data.root", "is not set; expected data.root = \"images\", or data.folder, the name of a folder "
                               "below an entry of $MNEME_DATA (nodes search their own entries)");
  std::vector<std::string> searched;
  for (const auto& root : roots) {
    std::error_code ignored;
    const auto folder = below.empty() ? root : root / below;
    if (std::filesystem::is_directory(folder, ignored))
      return folder;
    searched.push_back(folder.string());
  }
  if (below.empty())
    return failed("data.root", fmt::format("names no folder: {}", fmt::join(searched, ", ")));
  return failed("data.folder",
                fmt::format("names no folder: {}; expected a folder below data.root or below an entry of "
                            "$MNEME_DATA (write the path of any other folder as data.root)",
                            fmt::join(searched, ", ")));
}

user_part part_of(const std::vector<image_entry>& entries, bool has_domains) {
  user_part part;
  for (const auto& image : entries) {
    part.labels.push_back(image.label);
    if (has_domains)
      part.domains.push_back(image.domain);
  }
  return part;
}

digest128 names_and_sizes(const data_section& data, const std::vector<path>& roots) {
  run_digest digest;
  const auto root = image_root(data, roots);
  const auto tree = root ? list_images(*root) : tl::unexpected(root.error());
  if (!tree)
    return digest.value();
  for (const auto* part : {&tree->train, &tree->test})
    for (const auto& image : *part) {
      std::error_code ignored;
      const auto name = image.file.lexically_relative(tree->root).generic_string();
      digest.add(digest_of(std::as_bytes(std::span(name))));
      digest.add(std::filesystem::file_size(image.file, ignored));
    }
  return digest.value();
}

expected<image_tree> list_images(const path& root) {
  tree_reader reader(root);
  const auto top = list_folder(root);
  if (!top)
    return tl::unexpected(top.error());
  const auto parts = find_parts(root, *top);
  if (!parts)
    return tl::unexpected(parts.error());
  const bool has_test = !parts->test.empty();
  if (parts->train != root)
    reader.record_left_out(*top);
  const auto train = reader.read_part(parts->train);
  const auto test = has_test ? reader.read_part(parts->test) : listed_domains{};
  const auto classes = classes_in(train), domains = domains_in(train);
  if (reader.errors.empty() && has_test) {
    compare_names(classes, classes_in(test), *parts, "class", reader);
    compare_names(domains, domains_in(test), *parts, "domain", reader);
  }
  if (classes.size() > tree_classes_max)
    reader.report(root, fmt::format("holds {} classes; expected at most {}", classes.size(), tree_classes_max));
  image_tree tree{.root = root,
                  .classes = {.where = root.string(),
                              .count = std::ssize(classes),
                              .names = {classes.begin(), classes.end()},
                              .domains = {domains.begin(), domains.end()}},
                  .warnings = parts->warnings};
  append(reader.errors, validate_names(tree.classes.names, root.string()));
  append(reader.errors, validate_names(tree.classes.domains, root.string()));
  if (!reader.errors.empty())
    return tl::unexpected(std::move(reader.errors));
  append(tree.warnings, reader.warnings());
  tree.train = numbered(train, tree.classes);
  tree.test = numbered(test, tree.classes);
  return tree;
}

} // namespace mneme
