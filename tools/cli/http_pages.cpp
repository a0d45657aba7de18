#include "tools/cli/http_pages.hpp"
namespace mneme {
namespace {

/// The registered functions; null if tools/live is not linked. A function-local static, because registrations run
/// before main().
http_support& registered_pages() {
  static http_support support;
  return support;
}

tl::unexpected<diagnostics> no_pages(const char* option) {
  return failed(option, "this build serves no pages; build with -DMNEME_LIVE=ON");
}

} // namespace

expected<http_pages> serve_report(const http_options& options, std::shared_ptr<live_view> view) {
  const auto serve = registered_pages().report;
  if (serve == nullptr)
    return no_pages("--serve");
  if (auto pages = serve(options, std::move(view)))
    return std::move(*pages);
  return failed("", "--serve = " + std::to_string(options.port) +
                        ": cannot listen on this port; expected a free port, or 0 for any");
}

expected<http_pages> serve_state(const http_options& options, process_state state) {
  const auto serve = registered_pages().state;
  if (serve == nullptr)
    return no_pages("--metrics");
  if (auto pages = serve(options, std::move(state)))
    return std::move(*pages);
  return failed("--metrics", "cannot listen on port " + std::to_string(options.port) + " of " + options.host +
                                 "; expected an address of this machine with a free port, or port 0 for any");
}

http_registration::http_registration(const http_support& support) noexcept { registered_pages() = support; }

} // namespace mneme
