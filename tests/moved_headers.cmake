# SPDX-License-Identifier: BSD-3-Clause
#
# After the commands in CHANGELOG.md that update a program's includes, the oldest first, each of these headers of 0.1.0
# and 0.2.0 exists.

cmake_minimum_required(VERSION 3.22)

set(headers
    heed/text/bpe heed/text/utf8 heed/metrics/bleu heed/view/alignment heed/distributed/gradients heed/translator/options
    heed/seq2seq/load heed/multi_head heed/multi_hop heed/latent_heads heed/talking_heads heed/per_head/gated heed/abcnn
    heed/memory heed/at_once heed/concepts heed/nn/adam heed/nn/gradient_norm heed/io/torch heed/core/lanes
    heed/core/tables heed/core/blas heed/core/constant heed/core/members heed/ops/moves heed/attention/place
    heed/attention/rows heed/score/hooks heed/normalize/hooks
    heed/ad/elementwise heed/ad/fused heed/ops/shape heed/ops/training heed/fused heed/seq2seq/fixed_context heed/kernels/adam heed/kernels/gru
    heed/attention/at_once heed/attention/in_blocks heed/attention/in_order heed/attention/step heed/attention/tiled
    heed/attention/answer heed/attention/linear heed/attention/hook_names heed/ad/kept_results
    heed/attention/growing heed/attention/drawn heed/attention/families heed/attention/grown heed/attention/normalize_hooks
    heed/attention/inner_product heed/attention/projection heed/attention/streaming
    heed/kernels/tiles/attend heed/kernels/tiles/changes heed/kernels/tiles/distances heed/kernels/tiles/pairs
    heed/kernels/tiles/rules
    # headers that have not moved
    heed/heed heed/attention heed/score/additive heed/ops/products)

file(READ "${SOURCE_DIR}/CHANGELOG.md" changelog)
string(REPLACE ";" "@" changelog "${changelog}")  # which no command contains, but lists do not split
string(REGEX MATCHALL "\nsed -E -i '[^\n]*' FILES\n" commands "${changelog}")
list(LENGTH commands count)
if(count LESS 2)
  message(FATAL_ERROR "CHANGELOG.md has no lines: sed -E -i '...' FILES")
endif()
list(REVERSE commands)  # the newest version comes first
set(rewriting "")
foreach(command IN LISTS commands)
  string(REGEX REPLACE "\nsed -E -i '(.*)' FILES\n" "\\1; " command "${command}")
  string(APPEND rewriting "${command}")
endforeach()
string(REPLACE "@" ";" rewriting "${rewriting}")
set(problems "")
foreach(header IN LISTS headers)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "#include <${header}.hpp>" COMMAND sed -E "${rewriting}"
                  OUTPUT_VARIABLE now OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "^#include <(.*)>$" "\\1" now "${now}")
  if(NOT EXISTS "${SOURCE_DIR}/include/${now}")
    list(APPEND problems "<${header}.hpp> becomes <${now}>, which does not exist")
  endif()
endforeach()
if(problems)
  list(JOIN problems "\n" problems)
  message(FATAL_ERROR "${problems}")
endif()
