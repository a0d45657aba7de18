// USPS: 16x16 handwritten digits from postal envelopes (Hull 1994).
#include "runtime/data/data_sources.hpp"
#include "runtime/data/idx.hpp"
namespace mneme {
namespace {

const idx_set usps_files{
    .files = {.data_set = "usps",
              .folders = {"usps", "USPS"},
              .names = {{"usps-train-images-idx3-ubyte", "train-images-idx3-ubyte"},
                        {"usps-train-labels-idx1-ubyte", "train-labels-idx1-ubyte"},
                        {"usps-test-images-idx3-ubyte", "t10k-images-idx3-ubyte"},
                        {"usps-test-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"}},
              .remedy = "`tools/fetch_data usps` downloads them."},
    .layout = {.height = 16, .width = 16, .classes = 10},
};

const source_registration usps_line{
    {.name = "usps",
     .summary = "7,291 + 2,007 handwritten digits, gray 16x16, 10 classes; tools/fetch_data usps",
     .files = usps_files.files,
     .load = [](const data_section& data, const auto& roots,
                std::uint64_t) { return load_idx(usps_files, data, roots); },
     .index_files = true}};

} // namespace
} // namespace mneme
