#include "tools/cli/messages.hpp"
#include "tools/cli/report_files.hpp"
#include "tools/cli/study_options.hpp"
namespace mneme {

int report_runs(const report_arguments& arguments) {
  auto runs = select_runs(arguments.folders, arguments.where);
  if (!runs)
    return print_errors(runs.error());
  const report_files files{.page = arguments.file.empty() ? "report.html" : arguments.file,
                           .user_names_page = true,
                           .svg = arguments.svg,
                           .png = arguments.png,
                           .tensorboard = arguments.tensorboard};
  if (const auto written = write_report(std::move(*runs), files); !written)
    return print_errors(written.error());
  std::printf("%s\n", files.page.c_str());
  return exit_done;
}

} // namespace mneme
