// SPDX-License-Identifier: Apache-2.0
// Memory that is zero at first, for programs that rely on it. To be preloaded: libiscsi 1.19 takes
// the memory of an iSER connection by malloc() and reads pointers in it that it has not written
// (lib/iser.c:1423 and :1009), so a second connection crashes if that memory was used before.
#include <stdlib.h>

void* malloc(size_t size) {
    return calloc(1, size);
}
