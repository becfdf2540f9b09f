// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include "twin.hpp"

/// The presets of each paper.
namespace twins {

/// Called with the name of a preset and a function that fills its twin.
using presets = std::function<void(const std::string& name, const std::function<void(twin&)>& fill)>;

// of_states.cpp: the queries are decoder states, one per step
void bahdanau2015(const presets& add);
void choi2018(const presets& add);
void gehring2017(const presets& add);
void luong2015(const presets& add);
void wu2019(const presets& add);
void xu2015(const presets& add);

// with_memory.cpp: depends on earlier attention
void chiu2018(const presets& add);
void golovneva2024(const presets& add);
void graves2013(const presets& add);
void mi2016(const presets& add);
void raffel2017(const presets& add);
void sankaran2016(const presets& add);

// of_indices.cpp: inner products, and the positions of queries and keys
void choromanski2021(const presets& add);
void katharopoulos2020(const presets& add);
void lin2025(const presets& add);
void press2022(const presets& add);
void raffel2020(const presets& add);
void schlag2021(const presets& add);
void shaw2018(const presets& add);
void su2021(const presets& add);
void yang2025(const presets& add);

// of_weights.cpp: weights other than softmax of inner products
void correia2019(const presets& add);
void gemma2024(const presets& add);
void gupta2021(const presets& add);
void henry2020(const presets& add);
void openai2025(const presets& add);
void ramapuram2025(const presets& add);
void tan2025(const presets& add);
void xiao2024(const presets& add);

// of_heads.cpp
void ainslie2023(const presets& add);
void dao2024(const presets& add);
void deepseek2024(const presets& add);
void qiu2025(const presets& add);
void shazeer2020(const presets& add);
void sun2023(const presets& add);
void vaswani2017(const presets& add);
void yang2024(const presets& add);
void ye2024(const presets& add);

// of_pairs.cpp
void yin2016(const presets& add);

}  // namespace twins
