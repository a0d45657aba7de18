/// file_keys: interface of methods that read the value of one key from a file that another key names.
#pragma once
namespace mneme {

/// Implemented in addition to strategy, so that the resolved scenario contains the values in effect.
class file_keys {
public:
  virtual ~file_keys() = default;
  /// Sets the keys that follow from files. Called after all keys were read. A file that cannot be read changes nothing;
  /// its error is reported when the run is loaded.
  virtual void read_file_keys() = 0;
};

} // namespace mneme
