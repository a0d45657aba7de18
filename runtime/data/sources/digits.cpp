// digits: MNIST and USPS as two domains of one data set. USPS is resized from 16x16 to 28x28.
#include "runtime/base/check.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/data/resize.hpp"
#include "runtime/data/splits.hpp"
#include <algorithm>
namespace mneme {
namespace {

expected<raw_data> load_part(const std::string& name, const data_section& data,
                             const std::vector<std::filesystem::path>& roots) {
  const auto sources = data_sources();
  const auto part =
      std::find_if(sources.begin(), sources.end(), [&](const auto& source) { return source.name == name; });
  MNEME_CHECK(part != sources.end(), name);
  return part->load(data, roots, 0);
}

/// Concatenates the rows of domain 0 and domain 1.
image_table chained(image_table first, const image_table& second) {
  auto shape = first.images.sizes().vec();
  shape[0] += second.size();
  const auto images = new_tensor(shape, at::kByte);
  images.narrow(0, 0, first.size()).copy_(first.images);
  images.narrow(0, first.size(), second.size()).copy_(second.images);
  first.images = images;
  first.domains.assign(first.labels.size(), 0);
  first.domains.insert(first.domains.end(), second.labels.size(), 1);
  first.labels.insert(first.labels.end(), second.labels.begin(), second.labels.end());
  return first;
}

expected<raw_data> load_digits(const data_section& data, const std::vector<std::filesystem::path>& roots) {
  auto mnist = load_part("mnist", data, roots);
  auto usps = load_part("usps", data, roots);
  if (auto errors = all_diagnostics(mnist, usps); !errors.empty())
    return tl::unexpected(errors);
  for (auto* table : {&usps->train, &usps->test})
    table->images = resize_bilinear(table->images, 28, 28);
  return raw_data{.name = "digits",
                  .train = chained(std::move(mnist->train), usps->train),
                  .test = chained(std::move(mnist->test), usps->test),
                  .classes = 10,
                  .domain_names = {"mnist", "usps"},
                  .mean = {0.5},
                  .deviation = {0.5}};
}

const source_registration digits_line{
    {.name = "digits",
     .summary = "67,291 + 12,007 handwritten digits in 2 domains (mnist, usps), gray 28x28, 10 classes; row limits "
                "apply per domain; tools/fetch_data mnist usps",
     .parts = {"mnist", "usps"},
     .load = [](const data_section& data, const auto& roots, std::uint64_t) { return load_digits(data, roots); },
     .index_files = true,
     .has_domains = true}};

} // namespace
} // namespace mneme
