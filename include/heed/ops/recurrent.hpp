// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tuple>
#include <utility>

#include <heed/gemm/weights.hpp>
#include <heed/kernels/recurrent.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>

/// Steps of recurrent layers: see kernels/recurrent.hpp; on the tape: ad/products.hpp.
namespace heed::inline HEED_TARGET::ops {

/// Which sentences have ended at a step of a recurrent layer, and keep their state; without lengths, none.
struct sentence_ends {
    const lengths* real = nullptr;
    std::size_t step = 0;

    const std::size_t* data() const { return real == nullptr ? nullptr : real->data(); }
};

namespace detail {

/// The width of the state. Throws shape_error unless the input has `gates` times that width, and each sentence one
/// length.
template <std::size_t R>
std::size_t require_step(const char* name, const shape_of_rank<R>& inputs, const shape_of_rank<R>& hidden,
                         std::size_t gates, const sentence_ends& ends)
{
    auto must = hidden;
    must.back() *= gates;
    require_shape(name, "the input", inputs, must, gates == 3 ? "three" : "four", " gates of the state's width, ",
                  hidden);
    const std::size_t sentences = rows_of(hidden);
    if (ends.real != nullptr && ends.real->batch() != sentences)
        detail::refuse(name, ": ", heed::detail::number_of{ends.real->batch(), "length"}, " for ",
                       heed::detail::number_of{sentences, "sentence"}, "; give one length per sentence");
    return hidden.back();
}

}  // namespace detail

/// One step of a gated recurrent unit: inputs [...,3H] (x_z|x_r|x_h with their bias), hidden h [...,H], U [H,2H] (for
/// z|r), U_h [H,H] -> the new state [...,H]. All leading axes go through the same products.
///
///     z|r = σ(x_z|x_r + h U),  h̃ = tanh(x_h + (r ⊙ h) U_h),  h' = (1 − z) ⊙ h + z ⊙ h̃
///     ∂a_z = ∂h' ⊙ (h̃ − h) ⊙ z ⊙ (1 − z),  ∂a_h = ∂h' ⊙ z ⊙ (1 − h̃²),  ∂a_r = (∂a_h U_hᵀ) ⊙ h ⊙ r ⊙ (1 − r)
///     ∂inputs += ∂a,  ∂U += hᵀ ∂a_z|∂a_r,  ∂U_h += (r ⊙ h)ᵀ ∂a_h
///     ∂h += (1 − z) ⊙ ∂h' + r ⊙ (∂a_h U_hᵀ) + (∂a_z|∂a_r) Uᵀ
struct gru_op : operation<gru_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& inputs, const auto& hidden, const auto& U, const auto& U_h, const sentence_ends& ends)
    {
        const std::size_t H = detail::require_step("gru", inputs.shape, hidden.shape, 3, ends);
        require_shape("gru", "U", U.shape, {H, 2 * H}, "state by two gates");
        require_shape("gru", "U_h", U_h.shape, {H, H}, "state by state");
        return hidden.shape;
    }

    /// z|r|h̃ [B,3H], followed by r ⊙ h [B,H].
    static std::size_t saved(const auto&, const auto& hidden, const auto&, const auto&, const sentence_ends&)
    {
        return 4 * hidden.size();
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> inputs, in<T, R> hidden, in<T, 2> U, in<T, 2> U_h, const sentence_ends& ends,
                        out<T, R> next, T* gates)
    {
        const std::size_t B = detail::rows_of(hidden.shape), H = hidden.shape[R - 1];
        const kernels::gru_step<T> step{B, H, inputs.data, 3 * H, hidden.data, ends.data(), ends.step};
        T* const reset_hidden = gates + 3 * B * H;
        scratch here;
        T* const recurrent = here.take<T>(2 * B * H);
        kernels::times_weights(B, 2 * H, H, hidden.data, U.data, false, recurrent);
        kernels::gru_gates(step, recurrent, gates, reset_hidden);
        kernels::times_weights(B, H, H, static_cast<const T*>(reset_hidden), U_h.data, false, recurrent);
        kernels::gru_blend(step, recurrent, gates, next.data);
    }
};
inline constexpr gru_op gru{};

/// One step of a gated recurrent unit with the reset gate after the product: inputs [...,3H] (x_z|x_r|x_h with their
/// bias), hidden h [...,H], U [H,3H] (for z|r|h), c [H] -> the new state [...,H].
///
///     z|r = σ(x_z|x_r + h U_zr),  p = h U_h + c,  h̃ = tanh(x_h + r ⊙ p),  h' = (1 − z) ⊙ h + z ⊙ h̃
///     ∂a_z = ∂h' ⊙ (h̃ − h) ⊙ z ⊙ (1 − z),  ∂a_h = ∂h' ⊙ z ⊙ (1 − h̃²),  ∂a_r = ∂a_h ⊙ p ⊙ r ⊙ (1 − r),  ∂p = ∂a_h ⊙ r
///     ∂inputs += ∂a_z|∂a_r|∂a_h,  ∂U += hᵀ ∂a_z|∂a_r|∂p,  ∂c += Σ ∂p,  ∂h += (1 − z) ⊙ ∂h' + (∂a_z|∂a_r|∂p) Uᵀ
struct gru_reset_after_op : operation<gru_reset_after_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& inputs, const auto& hidden, const auto& U, const auto& c, const sentence_ends& ends)
    {
        const std::size_t H = detail::require_step("gru_reset_after", inputs.shape, hidden.shape, 3, ends);
        require_shape("gru_reset_after", "U", U.shape, {H, 3 * H}, "state by three gates");
        require_shape("gru_reset_after", "the bias of the product", c.shape, {H},
                      "one number for each dimension of the state");
        return hidden.shape;
    }

    /// z|r|h̃|p [B,4H].
    static std::size_t saved(const auto&, const auto& hidden, const auto&, const auto&, const sentence_ends&)
    {
        return 4 * hidden.size();
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> inputs, in<T, R> hidden, in<T, 2> U, in<T, 1> c, const sentence_ends& ends,
                        out<T, R> next, T* gates)
    {
        const std::size_t B = detail::rows_of(hidden.shape), H = hidden.shape[R - 1];
        scratch here;
        T* const recurrent = here.take<T>(3 * B * H);
        kernels::times_weights(B, 3 * H, H, hidden.data, U.data, false, recurrent);
        kernels::gru_reset_after({B, H, inputs.data, 3 * H, hidden.data, ends.data(), ends.step},
                                 static_cast<const T*>(recurrent), c.data, gates, next.data);
    }
};
inline constexpr gru_reset_after_op gru_reset_after{};

/// The state of an LSTM: the hidden state (output) and the cell.
template <class Hidden, class Cell = Hidden>
struct lstm_state {
    Hidden hidden;  // [...,H] h
    Cell cell;      // [...,H] c

    /// The state with f applied to both tensors, together with those of `others`.
    auto map(auto&& f, const auto&... others) const
    {
        auto h = f(hidden, others.hidden...);
        auto c = f(cell, others.cell...);
        return ops::lstm_state<decltype(h), decltype(c)>{std::move(h), std::move(c)};
    }
};
template <class Hidden, class Cell>
lstm_state(Hidden, Cell) -> lstm_state<Hidden, Cell>;

/// One step of long short-term memory: inputs [...,4H] (x_i|x_f|x_o|x_g with their bias), hidden h and cell c [...,H],
/// U [H,4H] -> the new lstm_state.
///
///     i|f|o = σ(x + h U),  g = tanh(x_g + h U_g),  c' = f ⊙ c + i ⊙ g,  h' = o ⊙ tanh(c')
///     ∂s = ∂c' + ∂h' ⊙ o ⊙ (1 − tanh²(c')),  ∂c += f ⊙ ∂s
///     ∂a_i = ∂s ⊙ g ⊙ i ⊙ (1 − i),  ∂a_f = ∂s ⊙ c ⊙ f ⊙ (1 − f),  ∂a_o = ∂h' ⊙ tanh(c') ⊙ o ⊙ (1 − o)
///     ∂a_g = ∂s ⊙ i ⊙ (1 − g²),  ∂inputs += ∂a,  ∂h += ∂a Uᵀ,  ∂U += hᵀ ∂a
struct lstm_op : operation<lstm_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& inputs, const auto& hidden, const auto& cell, const auto& U,
                      const sentence_ends& ends)
    {
        const std::size_t H = detail::require_step("lstm", inputs.shape, hidden.shape, 4, ends);
        require_shape("lstm", "the cell", cell.shape, hidden.shape, "the shape of the hidden state");
        require_shape("lstm", "U", U.shape, {H, 4 * H}, "state by four gates");
        return std::tuple{hidden.shape, cell.shape};
    }

    static auto results(auto hidden, auto cell) { return lstm_state{std::move(hidden), std::move(cell)}; }

    /// i|f|o|g|tanh(c') [B,5H].
    static std::size_t saved(const auto&, const auto& hidden, const auto&, const auto&, const sentence_ends&)
    {
        return 5 * hidden.size();
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> inputs, in<T, R> hidden, in<T, R> cell, in<T, 2> U, const sentence_ends& ends,
                        out<T, R> next_hidden, out<T, R> next_cell, T* gates)
    {
        const std::size_t B = detail::rows_of(hidden.shape), H = hidden.shape[R - 1];
        scratch here;
        T* const recurrent = here.take<T>(4 * B * H);
        kernels::times_weights(B, 4 * H, H, hidden.data, U.data, false, recurrent);
        kernels::lstm_forward({B, H, inputs.data, hidden.data, cell.data, ends.data(), ends.step},
                              static_cast<const T*>(recurrent), gates, next_hidden.data, next_cell.data);
    }
};
inline constexpr lstm_op lstm{};

}  // namespace heed::inline HEED_TARGET::ops
