// SPDX-License-Identifier: Apache-2.0
// Those who have something to do before the turn ends. Being listed twice is being listed once,
// which is what makes Stream::wake() cheap; an item may leave the list at any time.
#pragma once

namespace weft::linux {

class ReadyItem {
public:
    ReadyItem() = default;
    ReadyItem(const ReadyItem&) = delete;
    ReadyItem& operator=(const ReadyItem&) = delete;

    /// Called once per listing, after being taken off the list.
    virtual void serve() = 0;
    bool is_listed() const { return next_ != this; }

protected:
    virtual ~ReadyItem() { leave_list(); }
    void leave_list() {
        previous_->next_ = next_;
        next_->previous_ = previous_;
        next_ = previous_ = this;
    }

private:
    friend class ReadyList;
    ReadyItem* next_ = this;
    ReadyItem* previous_ = this;
};

class ReadyList {
public:
    bool empty() const { return !head_.is_listed(); }

    void add(ReadyItem& item) {
        if (!item.is_listed()) insert_before(item, head_);
    }

    /// Serves what is listed now. What is listed meanwhile waits for the next call.
    void serve_all() {
        Mark mark;
        insert_before(mark, head_);
        while (head_.next_ != &mark) {
            ReadyItem& first = *head_.next_;
            first.leave_list();
            first.serve();
        }
    }

private:
    struct Mark final : ReadyItem {
        void serve() override {}
    };

    static void insert_before(ReadyItem& item, ReadyItem& place) {
        item.previous_ = place.previous_;
        item.next_ = &place;
        place.previous_->next_ = &item;
        place.previous_ = &item;
    }

    Mark head_;
};

}  // namespace weft::linux
