/// gram_estimate: estimates the Gram matrix of a class from feature sums of clients only (STSA-E).
#pragma once
#include "runtime/base/tensor_map.hpp"
#include <vector>
namespace mneme {

/// Definition of kappa, the number of clients in the divisor of the scatter between clients.
enum class client_count : std::uint8_t {
  total,    ///< All clients that took part (paper). The scatter is too small if some of them lack the class.
  nonempty, ///< Clients with rows of the class. The estimate is then unbiased.
};

/// Sums of one class over the (dummy) clients that have rows of it, and the number of all clients that took part.
struct class_sums {
  at::Tensor sums{};   ///< [K', M] float64: c_k
  at::Tensor counts{}; ///< [K'] float64: n_k > 0
  std::int64_t clients = 0;
};

/// Adds the estimated Gram matrix of a class to `gram`, a float64 triangle (triangle.hpp). With N = sum n_k and m = sum
/// c_k / N (STSA, eq. 11, in a form that is always positive semi-definite):
///     G = N m m^T + (N - 1) / (kappa - 1) sum_k n_k (c_k / n_k - m)(c_k / n_k - m)^T
/// For kappa = 1 the scatter is omitted. Without rows nothing is added.
/// @param clamp_b uses the official variant if N < kappa. The official formula is G = a sum_k c_k c_k^T / n_k -
/// b (sum c_k)(sum c_k)^T. In the variant, a negative b becomes 0, and a class with a = 0 adds nothing.
void add_estimated_gram(at::Tensor& gram, const class_sums& from, client_count kappa, bool clamp_b);

/// Variant of the estimate; see add_estimated_gram().
struct estimate_rules {
  client_count kappa = client_count::total;
  bool clamp_b = false;
};

/// Collects the class sums of a task's clients. For parts without rows of a class only their total is stored, so memory
/// grows at most with the rows of the task. Without privacy noise that total is zero.
class held_sums {
public:
  /// Adds an upload. @param sums [P, C, M] float64, of P parts @param counts [P, C] float64
  void add(const at::Tensor& sums, const at::Tensor& counts);
  /// Adds the sums of class c, including those of parts without rows, to row first + c of `into` [classes, M].
  void add_to(at::Tensor& into, std::int64_t first) const;
  /// Returns the input of estimate_grams() and resets the collection.
  /// @param clients number of all parts of all clients that took part
  [[nodiscard]] tensors_ref take(const at::Tensor& gram, std::int64_t clients, const estimate_rules& rules);
  template <class Archive>
  void persist(Archive& state) {
    state(classes_);
  }

private:
  struct class_part {
    std::vector<at::Tensor> sums{}, counts{}; ///< [n, M] and [n] of each upload, for its n parts with rows of the class
    at::Tensor without_rows{};                ///< [M] sum over parts without rows of the class; undefined: zero
    template <class Archive>
    void persist(Archive& state) {
      state(sums)(counts)(without_rows);
    }
  };
  std::vector<class_part> classes_;
};
/// Function of a compute job: returns `gram` plus the estimate of every class.
[[nodiscard]] tensor_map estimate_grams(const tensor_map& in);

} // namespace mneme
