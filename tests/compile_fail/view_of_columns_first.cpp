// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this matrix is column-major, the default of Eigen
#include <heed/heed.hpp>

namespace mine {

/// The interface of Eigen::MatrixXf.
struct matrix {
    using PlainObject = matrix;
    enum { IsRowMajor = 0, IsVectorAtCompileTime = 0 };
    float numbers[6];

    float* data() { return numbers; }
    int rows() const { return 2; }
    int cols() const { return 3; }
    int innerStride() const { return 1; }
    int outerStride() const { return 2; }
    int size() const { return 6; }
};

}  // namespace mine

auto use(mine::matrix& m) { return heed::view_of(m); }
