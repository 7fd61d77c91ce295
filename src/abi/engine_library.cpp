// SPDX-License-Identifier: Apache-2.0
// The engine library is made of the layers' own; a library of CMake's needs one source besides.
