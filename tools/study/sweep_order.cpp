#include "tools/study/sweep_order.hpp"
#include "runtime/base/atomic_file.hpp"
#include <fstream>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

constexpr const char* order_file = "sweep.json";

} // namespace

void write_sweep_order(const std::filesystem::path& folder, const sweep_plan& plan) {
  auto runs = nlohmann::ordered_json::array();
  for (const auto& run : plan.runs)
    runs.push_back({{"run", run.label}, {"scenario_digest", run.digest}});
  const nlohmann::ordered_json written{{"runs", std::move(runs)}};
  write_atomically(folder / order_file, written.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::vector<std::string> read_sweep_order(const std::filesystem::path& folder) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(folder / order_file, none))
    return {};
  std::ifstream in(folder / order_file, std::ios::binary);
  const auto read = nlohmann::json::parse(in, nullptr, false);
  std::vector<std::string> digests;
  try {
    for (const auto& run : read.at("runs"))
      digests.push_back(run.at("scenario_digest").get<std::string>());
  } catch (const nlohmann::json::exception&) {
    return {}; // without an order the table has no default baseline
  }
  return digests;
}

} // namespace mneme
