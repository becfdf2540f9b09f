// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: `parameters` does not visit a tensor, or a module with parameters
// expect: shows_all.*passed_on
// expect: shows_all.*fixed
// expect: shows_all.*frozen
// expect: shows_all.*listed
// expect: shows_all.*constructed
// expect: shows_all.*viewed
// expect: heed: `parameters` returns a constant for a member that is not a constant in the module
#include <heed/heed.hpp>

#include <optional>
#include <utility>
#include <vector>

// Tensors that are not visited would be neither trained nor saved.
namespace mine {

template <class Matrix, class Vector>
struct passed_on {
    Matrix W;
    Vector b;
    static auto parameters(auto& self, auto&& visit) { return mine::passed_on{visit("W", self.W), self.b}; }
};
template <class Matrix, class Vector>
passed_on(Matrix, Vector) -> passed_on<Matrix, Vector>;

template <class Matrix>
struct fixed {
    Matrix W;
    heed::array<float, 1> b;
    static auto parameters(auto& self, auto&& visit) { return of(visit("W", self.W), self.b); }
    template <class M>
    static fixed<M> of(M W, heed::array<float, 1> b)
    {
        return {std::move(W), std::move(b)};
    }
};

template <class Matrix, class Inner>
struct frozen {
    Matrix W;
    Inner inner;
    static auto parameters(auto& self, auto&& visit) { return mine::frozen{visit("W", self.W), self.inner}; }
};
template <class Matrix, class Inner>
frozen(Matrix, Inner) -> frozen<Matrix, Inner>;

template <class Matrix, class Vector>
struct listed {
    Matrix W;
    std::vector<Vector> several;
    std::optional<Vector> one;
    static auto parameters(auto& self, auto&& visit) { return of(visit("W", self.W), self.several, self.one); }
    template <class M, class V>
    static listed<M, V> of(M W, std::vector<V> several, std::optional<V> one)
    {
        return {std::move(W), std::move(several), std::move(one)};
    }
};

template <class Matrix, class Vector>
class constructed {
public:
    constructed(Matrix w, Vector added) : W(std::move(w)), b(std::move(added)) {}
    static auto parameters(auto& self, auto&& visit) { return mine::constructed(visit("W", self.W), self.b); }

    Matrix W;
    Vector b;
};

template <class Matrix, class View>
struct viewed {
    Matrix W;
    View b;
    static auto parameters(auto& self, auto&& visit) { return mine::viewed{visit("W", self.W), self.b}; }
};
template <class Matrix, class View>
viewed(Matrix, View) -> viewed<Matrix, View>;

template <class Matrix, class Vector>
struct marked {
    Matrix W;
    Vector b;
    static auto parameters(auto& self, auto&& visit)
    {
        return mine::marked{visit("W", self.W), heed::constant{self.b}};
    }
};
template <class Matrix, class Vector>
marked(Matrix, Vector) -> marked<Matrix, Vector>;

template <class Module>
struct around {
    Module inner;
    static auto parameters(auto& self, auto&& visit) { return mine::around{visit("inner", self.inner)}; }
};
template <class Module>
around(Module) -> around<Module>;

}  // namespace mine

using matrix = heed::array<float, 2>;
using vector = heed::array<float, 1>;

void lift(heed::ad::tape<float>& on, const mine::passed_on<matrix, vector>& a, const mine::fixed<matrix>& b,
          const mine::around<mine::frozen<matrix, heed::score::general<matrix>>>& c)
{
    (void)heed::ad::lift(on, a);
    (void)heed::ad::lift(on, b);
    (void)heed::ad::lift(on, c);
}
auto count(const mine::listed<matrix, vector>& a, const mine::constructed<matrix, vector>& b,
           const mine::viewed<matrix, heed::tensor_view<const float, 1>>& c, const mine::marked<matrix, vector>& d)
{
    return heed::parameter_count(a) + heed::parameter_count(b) + heed::parameter_count(c) + heed::parameter_count(d);
}
