#include "runtime/data/part_folders.hpp"
#include "runtime/base/lower_case.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
namespace mneme {
namespace {

using std::filesystem::path;

struct named_role {
  std::string_view word{};
  part_role role = part_role::none;
};

constexpr std::array roles{
    named_role{"train", part_role::train},         named_role{"training", part_role::train},
    named_role{"val", part_role::validation},      named_role{"valid", part_role::validation},
    named_role{"validate", part_role::validation}, named_role{"validation", part_role::validation},
    named_role{"dev", part_role::validation},      named_role{"test", part_role::test},
    named_role{"tests", part_role::test},          named_role{"testing", part_role::test},
    named_role{"eval", part_role::test},           named_role{"evaluation", part_role::test},
};
/// Words of a folder name that do not affect its role, as in "seg_train", "Training Images" and "test_set".
constexpr std::array<std::string_view, 13> filler_words{"set",    "data", "dataset", "image", "images",
                                                        "img",    "imgs", "seg",     "split", "pictures",
                                                        "photos", "part", "samples"};

part_role role_of_word(std::string_view word) {
  const auto* const known_role =
      std::find_if(roles.begin(), roles.end(), [&](const named_role& known) { return known.word == word; });
  return known_role == roles.end() ? part_role::none : known_role->role;
}

/// Removes suffixes: "trainset" and "train2017" become "train".
std::string_view without_suffix(std::string_view word) {
  for (const std::string_view suffix : {"set", "data"})
    if (word.size() > suffix.size() && word.ends_with(suffix) &&
        role_of_word(word.substr(0, word.size() - suffix.size())) != part_role::none)
      return word.substr(0, word.size() - suffix.size());
  constexpr std::size_t year_digits = 4;
  const auto last_letter = word.find_last_not_of("0123456789");
  if (last_letter != std::string_view::npos && word.size() - last_letter - 1 == year_digits)
    return word.substr(0, last_letter + 1);
  return word;
}

/// Splits a name into runs of letters and digits.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : lower_case(name) + " ") {
    if (('a' <= c && c <= 'z') || ('0' <= c && c <= '9')) {
      word += c;
      continue;
    }
    if (!word.empty())
      words.push_back(std::exchange(word, {}));
  }
  return words;
}

/// Formats folder names: "'a' and 'b'".
std::string quoted_names(const std::vector<path>& folders) {
  std::vector<std::string> names;
  for (const auto& folder : folders)
    names.push_back("'" + folder_name(folder) + "'");
  return fmt::format("{}", fmt::join(names, " and "));
}

/// Formats the first folder names: "3 folders ('a', 'b', ...)".
std::string first_names(const std::vector<path>& folders) {
  constexpr std::size_t named_max = 3;
  std::string names;
  for (std::size_t i = 0; i < std::min(folders.size(), named_max); ++i)
    names += fmt::format("{}'{}'", i > 0 ? ", " : "", folder_name(folders[i]));
  return fmt::format("{} folder{} ({}{})", folders.size(), folders.size() == 1 ? "" : "s", names,
                     folders.size() > named_max ? ", ..." : "");
}

/// Finds the parts in one folder. The members are the folders of each role. Folders without a role are ignored.
class part_finder {
public:
  part_finder(const path& root, const folder_content& content) : root_(root) {
    for (const auto& folder : content.folders)
      by_role_[part_role_of(folder_name(folder))].push_back(folder);
  }

  expected<part_folders> find() {
    auto &train = by_role_[part_role::train], &test = by_role_[part_role::test],
         &validation = by_role_[part_role::validation];
    if ((train.empty() && test.empty() && validation.empty()) || are_classes())
      return with_similar_names();
    diagnostics unlabeled = leave_out_unlabeled(test, validation);
    const bool tests_on_validation = test.empty() && !validation.empty();
    auto& tested = tests_on_validation ? validation : test;
    if (train.empty())
      return no_training_part(tested);
    if (train.size() > 1)
      return two_folders(train, "training");
    if (tested.size() > 1)
      return two_folders(tested, "test");
    part_folders parts{.train = inner_part(train.front()),
                       .test = tested.empty() ? path() : inner_part(tested.front()),
                       .warnings = std::move(unlabeled)};
    if (folder_name(train.front()) != "train" || (!tested.empty() && folder_name(tested.front()) != "test"))
      warn(parts, fmt::format("{} is read as the training part{}", quoted_names({train.front()}),
                              tested.empty() ? "" : ", " + quoted_names(tested) + " as the test part"));
    if (!tests_on_validation && !validation.empty())
      warn(parts, fmt::format("the validation part {} is left out: there is a test part", quoted_names(validation)));
    if (const auto& others = by_role_[part_role::none]; !others.empty())
      warn(parts, fmt::format("{} next to the folders of the parts: left out", first_names(others)));
    return parts;
  }

private:
  /// True if the folders are classes, even if some are named train or test: they contain images but no folders.
  bool are_classes() {
    if (by_role_[part_role::none].empty())
      return false;
    for (const auto role : {part_role::train, part_role::validation, part_role::test})
      for (const auto& folder : by_role_[role])
        if (const auto inner = list_folder(folder); !inner || !inner->folders.empty() || inner->images.empty())
          return false;
    return true;
  }
  /// Removes test folders without class folders if a validation part can replace them. Returns warnings.
  static diagnostics leave_out_unlabeled(std::vector<path>& test, const std::vector<path>& validation) {
    diagnostics warnings;
    if (validation.empty())
      return warnings;
    std::erase_if(test, [&](const path& folder) {
      const auto content = list_folder(folder);
      const bool is_unlabeled = content && content->folders.empty();
      if (is_unlabeled)
        warnings.push_back({folder.string(), "holds no folders of classes and is left out"});
      return is_unlabeled;
    });
    return warnings;
  }
  /// Supports a common layout of archives: seg_train/seg_train/CLASS.
  path inner_part(const path& folder) const {
    const auto content = list_folder(folder);
    const bool is_wrapper = content && content->folders.size() == 1 && content->images.empty() &&
                            part_role_of(folder_name(content->folders.front())) == part_role_of(folder_name(folder));
    return is_wrapper ? content->folders.front() : folder;
  }
  /// Uses all of `root` as the training part, and warns about folder names that resemble the name of a part.
  [[nodiscard]] part_folders with_similar_names() {
    part_folders parts{.train = root_};
    std::vector<path> similar;
    for (const auto& folder : by_role_[part_role::none]) {
      const auto name = lower_case(folder_name(folder));
      const auto has_prefix = [&](std::string_view prefix) { return name.starts_with(prefix); };
      if (has_prefix("train") || has_prefix("test") || has_prefix("valid") || has_prefix("val_") || has_prefix("val-"))
        similar.push_back(folder);
    }
    if (!similar.empty())
      warn(parts, fmt::format("{}: read as classes or domains, although the names begin like those of parts; parts are "
                              "called train and test",
                              first_names(similar)));
    return parts;
  }
  [[nodiscard]] tl::unexpected<diagnostics> no_training_part(const std::vector<path>& tested) const {
    return failed(root_.string(),
                  fmt::format("has the part {} and no training part; expected a folder train with the same classes, or "
                              "data.root = \"{}\" with data.test_share = 0.2, which draws both parts from it",
                              quoted_names(tested), tested.front().string()));
  }
  [[nodiscard]] tl::unexpected<diagnostics> two_folders(const std::vector<path>& folders, const char* part) const {
    return failed(root_.string(), fmt::format("has several folders that are named like a {} part: {}; expected one: "
                                              "merge them, or move the others away",
                                              part, quoted_names(folders)));
  }
  void warn(part_folders& parts, std::string text) const {
    parts.warnings.push_back({root_.string(), std::move(text)});
  }

  path root_;
  std::map<part_role, std::vector<path>> by_role_{};
};

} // namespace

part_role part_role_of(std::string_view folder_name) {
  std::optional<part_role> role;
  for (const auto& word : words_of(folder_name)) {
    if (std::find(filler_words.begin(), filler_words.end(), word) != filler_words.end())
      continue;
    const auto of_word = role_of_word(without_suffix(word));
    if (of_word == part_role::none || role)
      return part_role::none;
    role = of_word;
  }
  return role.value_or(part_role::none);
}

expected<part_folders> find_parts(const path& root, const folder_content& content) {
  return part_finder(root, content).find();
}

} // namespace mneme
