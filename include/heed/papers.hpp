// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Every published mechanism under its paper's name, built from the same policies as your own. Not part of heed.hpp.

#include <heed/papers/ainslie2023.hpp>
#include <heed/papers/bahdanau2015.hpp>
#include <heed/papers/chiu2018.hpp>
#include <heed/papers/choi2018.hpp>
#include <heed/papers/choromanski2021.hpp>
#include <heed/papers/correia2019.hpp>
#include <heed/papers/dao2024.hpp>
#include <heed/papers/deepseek2024.hpp>
#include <heed/papers/gehring2017.hpp>
#include <heed/papers/gemma2024.hpp>
#include <heed/papers/golovneva2024.hpp>
#include <heed/papers/graves2013.hpp>
#include <heed/papers/gupta2021.hpp>
#include <heed/papers/henry2020.hpp>
#include <heed/papers/katharopoulos2020.hpp>
#include <heed/papers/lin2025.hpp>
#include <heed/papers/luong2015.hpp>
#include <heed/papers/mi2016.hpp>
#include <heed/papers/openai2025.hpp>
#include <heed/papers/press2022.hpp>
#include <heed/papers/qiu2025.hpp>
#include <heed/papers/raffel2017.hpp>
#include <heed/papers/raffel2020.hpp>
#include <heed/papers/ramapuram2025.hpp>
#include <heed/papers/sankaran2016.hpp>
#include <heed/papers/shaw2018.hpp>
#include <heed/papers/shazeer2020.hpp>
#include <heed/papers/su2021.hpp>
#include <heed/papers/sun2023.hpp>
#include <heed/papers/tan2025.hpp>
#include <heed/papers/vaswani2017.hpp>
#include <heed/papers/wu2019.hpp>
#include <heed/papers/xiao2024.hpp>
#include <heed/papers/xu2015.hpp>
#include <heed/papers/yang2024.hpp>
#include <heed/papers/ye2024.hpp>
#include <heed/papers/yin2016.hpp>
