// EMNIST Balanced: 28x28 digits and letters (Cohen, Afshar, Tapson, van Schaik 2017). The public files contain
// transposed images; `data.transposed = true` makes them upright.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/idx.hpp"
namespace mneme {
namespace {

const idx_set emnist_balanced_files{
    .files = {.data_set = "emnist-balanced",
              .folders = {"emnist-balanced", "emnist-balanced/gzip", "EMNIST/raw", "EMNIST/raw/gzip", "EMNIST",
                          "EMNIST/gzip", "emnist", "emnist/gzip", "gzip"},
              .names = {{"emnist-balanced-train-images-idx3-ubyte"},
                        {"emnist-balanced-train-labels-idx1-ubyte"},
                        {"emnist-balanced-test-images-idx3-ubyte"},
                        {"emnist-balanced-test-labels-idx1-ubyte"}},
              .remedy = "`tools/fetch_data emnist-balanced` downloads them."},
    .layout = {.height = 28, .width = 28, .classes = 47},
};

const source_registration emnist_balanced_line{
    {.name = "emnist-balanced",
     .summary = "112,800 + 18,800 handwritten digits and letters, gray 28x28, 47 classes; tools/fetch_data "
                "emnist-balanced (its images are transposed: data.transposed = true)",
     .files = emnist_balanced_files.files,
     .load = [](const data_section& data, const auto& roots,
                std::uint64_t) { return load_idx(emnist_balanced_files, data, roots); },
     .index_files = true}};

} // namespace
} // namespace mneme
