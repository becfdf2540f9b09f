// SPDX-License-Identifier: BSD-3-Clause

// Empty: this file only precompiles the headers, see CMakeLists.txt.
