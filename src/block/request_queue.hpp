// SPDX-License-Identifier: Apache-2.0
// Requests in line, first come first served. The line goes through BlockRequest::next, which
// belongs to whoever holds the request: it costs no memory, and its bound is its makers'.
#pragma once

#include "base/check.hpp"
#include "weft/block_device.hpp"

namespace weft::block {

class RequestQueue {
public:
    bool empty() const { return first_ == nullptr; }

    void push_back(BlockRequest& request) {
        request.next = nullptr;
        (empty() ? first_ : last_->next) = &request;
        last_ = &request;
    }
    BlockRequest& pop_front() {
        WEFT_CHECK(!empty());
        BlockRequest& request = *first_;
        first_ = request.next;
        request.next = nullptr;
        return request;
    }

private:
    BlockRequest* first_ = nullptr;
    BlockRequest* last_ = nullptr;
};

}  // namespace weft::block
