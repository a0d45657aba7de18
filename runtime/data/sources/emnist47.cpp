// emnist47: a subset of EMNIST Balanced with upright images; each of its 47 classes has 800 training and 100 test
// images. Results on it must not be reported as results on EMNIST Balanced.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/idx.hpp"
namespace mneme {
namespace {

const idx_set emnist47_files{
    .files = {.data_set = "emnist47",
              .folders = {"emnist47"},
              .names = {{"emnist47-train-images-idx3-ubyte"},
                        {"emnist47-train-labels-idx1-ubyte"},
                        {"emnist47-test-images-idx3-ubyte"},
                        {"emnist47-test-labels-idx1-ubyte"}},
              .remedy = "This subset has no public download; `tools/fetch_data emnist-balanced` downloads the whole "
                        "set, for data.name = \"emnist-balanced\"."},
    .layout = {.height = 28, .width = 28, .classes = 47},
};

const source_registration emnist47_line{
    {.name = "emnist47",
     .summary =
         "37,600 + 4,700 upright images, a subset of EMNIST Balanced, gray 28x28, 47 classes; no public download",
     .files = emnist47_files.files,
     .load = [](const data_section& data, const auto& roots,
                std::uint64_t) { return load_idx(emnist47_files, data, roots); },
     .index_files = true}};

} // namespace
} // namespace mneme
