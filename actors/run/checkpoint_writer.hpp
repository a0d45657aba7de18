/// checkpoint_writer: actor that writes checkpoints to disk, one after another, while the run continues.
#pragma once
#include "actors/protocol/interfaces.hpp"
#include "runtime/storage/checkpoint_file.hpp"
namespace mneme {

class checkpoint_writer_state {
public:
  static constexpr const char* name = "mneme.checkpoint_writer";
  checkpoint_writer_state(checkpoint_writer_actor::pointer, std::shared_ptr<checkpoint_folder> folder)
      : folder_(std::move(folder)) {}
  checkpoint_writer_actor::behavior_type make_behavior();

private:
  std::shared_ptr<checkpoint_folder> folder_;
};

} // namespace mneme
