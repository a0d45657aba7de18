/// load_module: loads and checks a module file, and makes it a net for a run.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/modules/module_net.hpp"
#include <filesystem>
namespace mneme {

/// Layers of protection against a malicious module file. Only tests disable one, to test the other alone.
struct module_layers {
  bool checks = true;                 ///< TorchScript: checks code, pickles and graph before any of it runs.
  bool cell = true;                   ///< Probes the file in a sandbox process before this process loads it.
  std::int64_t cell_seconds = 0;      ///< Processor time of the sandbox in seconds; 0: by file size.
  std::int64_t cell_memory_bytes = 0; ///< Memory of the sandbox in bytes; 0: by file size.
};

/// Requirements of a run on a module.
struct module_demands {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row; unused if the module declares its own.
  row_form form = row_form::images;    ///< Shape and type in which forward() receives rows.
  std::int64_t tokens = 0;             ///< row_form::tokens: exclusive upper bound of token ids.
  bool own_rows = false;    ///< The module declares its rows in a member `rows`, [B, C, H, W]; B is the batch limit.
  std::int64_t classes = 0; ///< Number of classes of the run; 0: the net returns features, without a head.
  bool scores = false;      ///< forward() returns class scores instead of features.
  head_kind head = head_kind::linear;
  bool trained = false;     ///< The parameters are trained.
  bool training = false;    ///< Batch norms and dropout train in the mode that the file stores.
  bool native_code = false; ///< The module may be loaded without a sandbox if the machine supports none.
  std::string device = "cpu";
  module_layers layers{};
};

/// Loads a file of torch.export.save or torch.jit.save and probes it on synthetic rows of the run's shape. The result
/// must be [rows, D] float32, finite, and equal in repeated calls. A row's result must not depend on the other rows of
/// the call. Returns one diagnostic with the file's name per violation, and the byte offset for a damaged archive.
[[nodiscard]] expected<std::shared_ptr<const module_net>> load_module(const std::filesystem::path& file,
                                                                      const module_demands& demands);

} // namespace mneme
