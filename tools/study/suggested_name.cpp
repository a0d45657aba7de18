#include "tools/study/suggested_name.hpp"
#include "runtime/base/diagnostic.hpp"
#include <algorithm>
namespace mneme {
namespace {

constexpr std::size_t names_shown = 12, letters_min = 3;

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// The known name that is most similar to a word without a section, such as "cohort", or with a wrong one, such as
/// "round.cohrt".
std::string meant_name(const std::string& word, const std::vector<std::string>& known) {
  const auto within = [&](const std::string& spelling) {
    const auto same = [&](const std::string& name) { return last_part(name) == spelling; };
    const auto match = std::find_if(known.begin(), known.end(), same);
    return match != known.end() ? *match : std::string{};
  };
  if (const auto same = within(word); !same.empty())
    return same;
  if (const auto near = closest_match(word, known); !near.empty())
    return near;
  std::vector<std::string> parts;
  for (const auto& name : known)
    parts.push_back(last_part(name));
  if (const auto near = closest_match(last_part(word), parts); !near.empty())
    return within(near);
  std::string longer; // shortest name that contains the word
  for (const auto& name : known)
    if (word.size() >= letters_min && name.find(word) != std::string::npos &&
        (longer.empty() || name.size() < longer.size()))
      longer = name;
  return longer;
}

} // namespace

std::string name_suggestion(const std::string& word, const std::vector<std::string>& known,
                            const std::string& otherwise) {
  if (const auto meant = meant_name(word, known); !meant.empty())
    return "did you mean '" + meant + "'?";
  if (!otherwise.empty() || known.empty())
    return otherwise;
  std::string text = "expected one of ";
  for (std::size_t i = 0; i < std::min(names_shown, known.size()); ++i)
    text += (i > 0 ? ", " : "") + known[i];
  return text + (known.size() > names_shown ? ", ..." : "");
}

} // namespace mneme
