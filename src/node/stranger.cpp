// SPDX-License-Identifier: Apache-2.0
#include "node/stranger.hpp"

#include "base/error_text.hpp"
#include "wire/array_host.hpp"
#include "wire/array_names.hpp"

namespace weft::node {
namespace {

IscsiInitiatorOptions discovery_at(const Address& address) {
    IscsiInitiatorOptions options;
    options.url.address = address;
    options.initiator_name = wire::controller_initiator_name;
    options.discovery = true;
    options.patience = Duration{};
    return options;
}

}  // namespace

std::string found_instead(const std::vector<iscsi::DiscoveredTarget>& targets,
                          const std::string& expected) {
    const auto box = wire::box_target_name(""), volume = wire::volume_target_name("");
    for (const auto& target : targets) {
        if (target.name == box + expected)
            return "it is there, and refuses this controller: perhaps it has another --key, or "
                   "none";
        if (target.name.starts_with(box))
            return "the box there is called " + target.name.substr(box.size());
        if (target.name.starts_with(volume)) return "a controller listens there, and no box";
    }
    return "an iSCSI server listens there, and no box";
}

Stranger::Stranger(World& world, const Address& address, std::string expected, Told told)
    : world_(world),
      expected_(std::move(expected)),
      told_(std::move(told)),
      transport_(world),
      initiator_(world, transport_, discovery_at(address),
                 {.up =
                      [this] {
                          initiator_.session().discover([this](auto targets) {
                              tell(targets ? found_instead(*targets, expected_)
                                           : why_not(targets.error()));
                          });
                      },
                  .gave_up = [this](Error why) { tell(why_not(why)); }}) {
    initiator_.begin();
}

std::string Stranger::why_not(Error why) {
    // A standby takes nobody yet, and says so; what is no iSCSI server does not even say that.
    if (initiator_.session().login_status() == wire::LoginStatus::service_unavailable)
        return "a controller listens there, and no box";
    return "what listens there is no box of Weft: " + to_text(why);
}

void Stranger::tell(const std::string& sentence) {
    if (!told_) return;
    world_.defer([told = std::exchange(told_, nullptr), sentence, alive = alive_] {
        if (*alive) told(sentence);
    });
}

}  // namespace weft::node
