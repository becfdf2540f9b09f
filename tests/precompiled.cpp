// SPDX-License-Identifier: BSD-3-Clause

// Nothing: this file only has the headers precompiled, see CMakeLists.txt.
