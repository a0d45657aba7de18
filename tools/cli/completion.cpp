#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/scenario/sections.hpp"
#include "tools/cli/component_keys.hpp"
#include "tools/cli/messages.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

const std::vector<std::string> shells{"bash", "zsh", "fish"};

/// Every key as "section.key".
std::vector<std::string> every_key() {
  scenario defaults;
  std::vector<std::string> keys;
  const auto add = [&](const std::string& section, const key_table& table) {
    for (const auto& key : table.all())
      keys.push_back(section.empty() ? key.name : section + "." + key.name);
  };
  for (const auto& group : sections_of(defaults))
    add(group.name, group.keys);
  const auto add_own = [&](const std::string& section, const auto& entries) {
    for_own_keys(entries, [&](const auto&, const key_table& own) { add(section, own); });
  };
  add_own("model", models());
  add_own("strategy", strategies());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

/// Arguments that a command accepts in addition to options and files.
std::vector<std::string> words_of(const std::string& command) {
  if (command == "list")
    return listed_things();
  if (command == "completion")
    return shells;
  std::vector<std::string> words;
  if (command == "new" || command == "help")
    for (const auto& entry : strategies())
      words.push_back(entry.name);
  if (command == "help")
    for (const auto& entry : models())
      words.push_back(entry.name);
  return words;
}

std::string in_single_quotes(const std::string& text) {
  std::string out = "'";
  for (const char letter : text)
    out += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return out + "'";
}

std::string bash_script(const std::vector<completed_command>& commands) {
  std::vector<std::string> names;
  std::string cases;
  for (const auto& command : commands) {
    names.push_back(command.name);
    auto words = words_of(command.name);
    words.insert(words.begin(), command.options.begin(), command.options.end());
    cases += fmt::format("      {}) words=\"{}\" ;;\n", command.name, fmt::join(words, " "));
  }
  return fmt::format(R"(# Completion of mneme for bash: source <(mneme completion bash)
_mneme() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{}" -- "$word"))
    return
  fi
  case $before in
    --set|--over) compopt -o nospace; COMPREPLY=($(compgen -S = -W "{}" -- "$word")); return ;;
    --by|--columns) COMPREPLY=($(compgen -W "{}" -- "$word")); return ;;
  esac
  case $word in
    -*|[a-z]*) case ${{COMP_WORDS[1]}} in
{}      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _mneme mneme
)",
                     fmt::join(names, " "), fmt::join(every_key(), " "), fmt::join(every_key(), " "), cases);
}

std::string zsh_script(const std::vector<completed_command>& commands) {
  std::string named, cases;
  for (const auto& command : commands) {
    named += fmt::format("    {}\n", in_single_quotes(command.name + ":" + command.summary));
    auto words = words_of(command.name);
    words.insert(words.end(), command.options.begin(), command.options.end());
    cases += fmt::format("    {}) compadd -- {} ;;\n", command.name, fmt::join(words, " "));
  }
  return fmt::format(R"(#compdef mneme
# Completion of mneme for zsh: mneme completion zsh > a folder of $fpath/_mneme
_mneme() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case $words[CURRENT-1] in
    --set|--over) compadd -S = -- {}; return ;;
    --by|--columns) compadd -- {}; return ;;
  esac
  case $words[2] in
{}  esac
  _files
}}
_mneme "$@"
)",
                     named, fmt::join(every_key(), " "), fmt::join(every_key(), " "), cases);
}

std::string fish_script(const std::vector<completed_command>& commands) {
  std::string text = "# Completion of mneme for fish: mneme completion fish > ~/.config/fish/completions/mneme.fish\n";
  for (const auto& command : commands) {
    text += fmt::format("complete -c mneme -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                        in_single_quotes(command.summary));
    const auto here = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
    for (const auto& option : command.options)
      if (option.starts_with("--"))
        text += fmt::format("complete -c mneme {} -l {}\n", here, option.substr(2));
    if (const auto words = words_of(command.name); !words.empty())
      text += fmt::format("complete -c mneme {} -a '{}'\n", here, fmt::join(words, " "));
  }
  for (const char* option : {"set", "over", "by", "columns"})
    text += fmt::format("complete -c mneme -l {} -x -a '{}'\n", option, fmt::join(every_key(), " "));
  return text;
}

} // namespace

int print_completion(const std::string& shell, const std::vector<completed_command>& commands) {
  if (shell != "bash" && shell != "zsh" && shell != "fish")
    return shell.empty() ? bad_input("no shell given; expected mneme completion bash, zsh or fish")
                         : unknown_word("shell", shell, shells);
  const auto text = shell == "bash"  ? bash_script(commands)
                    : shell == "zsh" ? zsh_script(commands)
                                     : fish_script(commands);
  std::fputs(text.c_str(), stdout);
  return exit_done;
}

} // namespace mneme
