/// gram_estimate: the second moments of a class from the feature sums of clients alone (STSA-E).
#pragma once
#include "runtime/base/tensor_map.hpp"
#include <vector>
namespace mneme {

/// Which number of clients kappa divides the scatter between them.
enum class client_count : std::uint8_t {
  total,    ///< All clients that took part, as in the paper: shrinks the scatter where some lack the class.
  nonempty, ///< Those that hold the class: unbiased.
};

/// Sums of one class over the (dummy) clients that hold it, and how many clients took part.
struct class_sums {
  at::Tensor sums{};   ///< [K', M] float64: c_k
  at::Tensor counts{}; ///< [K'] float64: n_k > 0
  std::int64_t clients = 0;
};

/// Adds the estimate of the class's Gram matrix to `gram`, a triangle (triangle.hpp), float64. With N = sum n_k and
/// m = sum c_k / N (STSA, eq. 11 in the form that is positive semi-definite by construction):
///     G = N m m^T + (N - 1) / (kappa - 1) sum_k n_k (c_k / n_k - m)(c_k / n_k - m)^T
/// kappa = 1 leaves the scatter out. No rows: nothing is added.
/// @param clamp_b the official code's way where N < kappa: the negative coefficient of the second term of
///     G = a sum_k c_k c_k^T / n_k - b (sum c_k)(sum c_k)^T (E1) is set to 0, and a class with a = 0 adds nothing
void add_estimated_gram(at::Tensor& gram, const class_sums& from, client_count kappa, bool clamp_b);

struct estimate_rules {
  client_count kappa = client_count::total;
  bool clamp_b = false;
};

/// The class sums of a task's clients, as they come in: of parts that hold no row of a class only the sum is kept, so
/// memory grows with the rows of the task at most. Without privacy noise it is zero.
class held_sums {
public:
  /// @param sums [P, C, M] float64, of P parts @param counts [P, C] float64
  void add(const at::Tensor& sums, const at::Tensor& counts);
  /// Adds the sums of class c, those of parts without rows among them, to row first + c of `into` [classes, M].
  void add_to(at::Tensor& into, std::int64_t first) const;
  /// What estimate_grams() works on; forgets everything. @param clients all parts of all clients that took part
  [[nodiscard]] tensors_ref take(const at::Tensor& gram, std::int64_t clients, const estimate_rules& rules);
  template <class Archive>
  void persist(Archive& state) {
    state(classes_);
  }

private:
  struct class_part {
    std::vector<at::Tensor> sums{}, counts{}; ///< [n, M], [n] of each client that holds the class
    at::Tensor without_rows{};                ///< [M] sum over parts without a row, or undefined: all zero
    template <class Archive>
    void persist(Archive& state) {
      state(sums)(counts)(without_rows);
    }
  };
  std::vector<class_part> classes_;
};
/// Compute job: `gram` with the estimate of every class added.
[[nodiscard]] tensor_map estimate_grams(const tensor_map& in);

} // namespace mneme
