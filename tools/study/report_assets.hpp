/// report_assets: style sheet and scripts of the report page.
#pragma once
#include <string_view>
namespace mneme {

extern const std::string_view report_style;
/// Handles dark and light mode and the visibility of groups. Shows the values at the pointer or, with arrow keys, of
/// the focused figure.
extern const std::string_view report_script;
/// Updates the page during a run; needs report_script. Each event contains the whole page.
extern const std::string_view live_script;

} // namespace mneme
