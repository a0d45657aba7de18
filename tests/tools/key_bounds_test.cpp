// Every key of every section, method and net has a lower and an upper bound, and refuses values beyond them with a
// message.
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/options/number_limits.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/read.hpp"
#include "runtime/scenario/sections.hpp"
#include "tests/support/scratch.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Scenario with one method and one net, whose keys are set one at a time.
class keyed_scenario {
public:
  keyed_scenario(const std::string& method, const std::string& net) {
    write_file(file_, "[strategy]\nname = " + quote_text(method) + "\n[model]\nname = " + quote_text(net) + "\n");
    settings_.strategy.name = method;
    settings_.model.name = net;
    for (const auto& entry : strategies())
      if (entry.name == method)
        settings_.strategy.method = entry.make();
    for (const auto& entry : models())
      if (entry.name == net)
        settings_.model.kind = entry.make();
  }

  [[nodiscard]] std::vector<section> sections() { return sections_of(settings_); }

  /// True if this value of the key is refused because of its bounds, not because of other keys.
  [[nodiscard]] bool refuses(const std::string& name, const std::string& value, const std::string& bounds) const {
    const auto read = read_scenario(file_, {{name, value}});
    return !read && std::any_of(read.error().begin(), read.error().end(), [&](const diagnostic& errors) {
      return errors.where == "--set" && errors.text.starts_with(name) && errors.text.find(bounds) != std::string::npos;
    });
  }

private:
  scratch_folder folder_;
  std::filesystem::path file_ = folder_.path() / "a.toml";
  scenario settings_;
};

/// Notation of a key's numbers.
struct number_form {
  bool is_integer = false, is_list = false;
  [[nodiscard]] std::string text(double value) const {
    const auto number = is_integer ? std::to_string(static_cast<std::int64_t>(value)) : number_text(value);
    return is_list ? bracket_text(number) : number;
  }
};

std::optional<number_form> form_of(const key& option) {
  using words_or_integers = std::variant<std::string, std::vector<std::int64_t>>;
  const auto& target = option.target;
  if (std::holds_alternative<std::int64_t*>(target))
    return number_form{.is_integer = true};
  if (std::holds_alternative<std::vector<std::int64_t>*>(target) || std::holds_alternative<words_or_integers*>(target))
    return number_form{.is_integer = true, .is_list = true};
  if (std::holds_alternative<double*>(target) || std::holds_alternative<device_value*>(target))
    return number_form{};
  if (std::holds_alternative<std::vector<double>*>(target))
    return number_form{.is_list = true};
  return std::nullopt;
}

/// Bounds such as " in [0, 1]" in the expected values of a key.
std::string bounds_text(const key& option) {
  const auto text = expected_text(option);
  const auto begin = std::min(text.find(" in ["), text.find(" in ("));
  return text.substr(begin, text.find(']', begin) + 1 - begin);
}

void check_numbers(const keyed_scenario& from, const std::string& name, const key& option, const number_form& form) {
  const auto& bounds = option.bounds;
  const auto refuses = [&](const std::string& value) { return from.refuses(name, value, bounds_text(option)); };
  const double limit = form.is_integer ? 1e15 : number_max;
  CHECK(bounds.low >= -limit);
  const bool is_seed = name == "seed" || name == "data.seed"; // any int64
  CHECK((bounds.high <= limit || is_seed));
  CHECK(bounds.low < bounds.high);
  const auto step = form.is_integer ? 1.0 : std::max(1.0, 1e-3 * std::abs(bounds.high));
  if (!is_seed) {
    CHECK_FALSE(refuses(form.text(bounds.high)));
    CHECK(refuses(form.text(bounds.high + step)));
    CHECK(refuses(form.text(bounds.low - step)));
  }
  std::vector<std::string> errors{"nan", "inf", "-inf", "1e300", "9223372036854775808", "-9223372036854775808"};
  if (!is_seed)
    errors.emplace_back("9223372036854775807");
  if (!form.is_integer)
    errors.insert(errors.end(), {"1e-300", "-1e-300", "5e-324"});
  for (const auto& text : errors) {
    CAPTURE(text);
    CHECK(refuses(form.is_list ? bracket_text(text) : text));
  }
  if (std::holds_alternative<device_value*>(option.target)) {
    CHECK(refuses("[1e300]"));
    CHECK(refuses("{ median = 1e300 }"));
    CHECK(from.refuses(name, "{ median = 1.0, sigma = 1e300 }", "expected a number in [0, 50]"));
  }
}

void check_units(const keyed_scenario& from, const std::string& name, const key& option) {
  const bool is_duration = std::holds_alternative<virtual_duration*>(option.target);
  if (!is_duration && !std::holds_alternative<byte_size*>(option.target))
    return;
  const auto refuses = [&](const std::string& value) { return from.refuses(name, value, "expected a "); };
  CHECK_FALSE(refuses(is_duration ? "1000000 h" : "1024 TiB"));
  for (const std::string text :
       {is_duration ? "1000001 h" : "1025 TiB", is_duration ? "9223372036854775808 ns" : "9223372036854775808 B",
        is_duration ? "0.1 ns" : "99999999999999999999999 TiB"}) {
    CAPTURE(text);
    CHECK(refuses(text));
  }
}

/// Checks the keys that are not in `checked` yet.
void check_keys(keyed_scenario&& from, std::set<std::string>& checked, const std::string& owner) {
  for (const auto& group : from.sections())
    for (const auto& option : group.keys.all()) {
      const auto name = group.name.empty() ? option.name : group.name + "." + option.name;
      const bool is_own = !owner.empty() && (group.name == "strategy" || group.name == "model");
      if (!checked.insert((is_own ? owner : "") + name).second)
        continue;
      CAPTURE(owner, name, expected_text(option));
      if (const auto form = form_of(option))
        check_numbers(from, name, option, *form);
      check_units(from, name, option);
    }
}

} // namespace

TEST_CASE("every key refuses values beyond its bounds with a message, in all sections, methods and nets") {
  std::set<std::string> checked;
  check_keys(keyed_scenario("fedavg", "mlp"), checked, "");
  for (const auto& entry : strategies())
    check_keys(keyed_scenario(entry.name, "mlp"), checked, entry.name + " ");
  for (const auto& entry : models())
    check_keys(keyed_scenario("fedavg", entry.name), checked, entry.name + " ");
  CHECK(checked.size() > 400);
}
