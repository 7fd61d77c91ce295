// SPDX-License-Identifier: Apache-2.0
// Questions to an etcd, one at a time: each is put to one member after another until one answers.
// A member that cannot be reached, says nothing for a while, or says that it cannot tell (it has no
// leader, it is cut off from the others) is left for the next. So a question may be carried out
// more than once, or late: whoever asks must ask so that this does no harm.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/world.hpp"

namespace weft::store {

class EtcdLink {
public:
    using Told = std::function<void(Result<std::string> body)>;

    /// `patience`: with one member, for one answer.
    EtcdLink(World& world, std::vector<Address> members, Duration patience);
    EtcdLink(const EtcdLink&) = delete;
    EtcdLink& operator=(const EtcdLink&) = delete;
    ~EtcdLink();

    /// Told once, never from inside; unless give_up() comes first. No error but etcd's own refusal,
    /// by which nothing was changed: all else is asked again. Nothing else may be asked meanwhile.
    void ask(const char* path, std::string body, Told told);
    /// What is asked for is not wanted any more: nobody is told.
    void give_up();
    /// Why the last member that was asked did not answer.
    Error trouble() const { return trouble_; }

private:
    class Exchange;

    void put();
    void heard(Result<std::string> body);
    void failed(Error why);

    World& world_;
    std::vector<Address> members_;
    Duration patience_;
    std::size_t at_ = 0;     ///< the member that is asked
    std::size_t tried_ = 0;  ///< in vain, one after another
    std::string path_, body_;
    Told told_;
    Error trouble_{.code = Code::timed_out};
    std::unique_ptr<Exchange>
        exchange_;  ///< with its connection, which stays for the next question
    std::unique_ptr<Timer> retry_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::store
