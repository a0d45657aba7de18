/// report_look: the style sheet and the scripts of a report's page.
#pragma once
#include <string_view>
namespace mneme {

extern const std::string_view report_style;
/// Dark or light, groups shown, and values under the pointer or, with arrow keys, of the focused figure.
extern const std::string_view report_script;
/// Follows a run: needs report_script before it. Each event is the page anew.
extern const std::string_view live_script;

} // namespace mneme
