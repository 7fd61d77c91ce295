// SPDX-License-Identifier: Apache-2.0
#include "abi/verbs/devices.hpp"

#include <algorithm>
#include <cstring>

#include "abi/verbs/context.hpp"

namespace weft::abi {
namespace {

std::vector<RnicDevice*>& ever_seen() {
    static auto* devices = new std::vector<RnicDevice*>;
    return *devices;
}

template <std::size_t Size>
void copy_text(char (&to)[Size], const std::string& text) {
    auto length = std::min(text.size(), Size - 1);
    std::memcpy(to, text.data(), length);
    to[length] = 0;
}

RnicDevice* make_device(const Interface& interface) {
    auto* device = new RnicDevice;
    device->number = static_cast<int>(ever_seen().size());
    device->face.node_type = IBV_NODE_RNIC;
    device->face.transport_type = IBV_TRANSPORT_IWARP;
    auto name = "weft_" + interface.name;
    auto second_name = "uverbs" + std::to_string(device->number);
    copy_text(device->face.name, name);
    copy_text(device->face.dev_name, second_name);
    copy_text(device->face.dev_path, "/sys/class/infiniband_verbs/" + second_name);
    copy_text(device->face.ibdev_path, "/sys/class/infiniband/" + name);
    ever_seen().push_back(device);
    return device;
}

RnicDevice* device_of(const Interface& interface) {
    auto& all = ever_seen();
    auto found = std::find_if(all.begin(), all.end(), [&](RnicDevice* each) {
        return each->interface.name == interface.name;
    });
    auto* device = found != all.end() ? *found : make_device(interface);
    device->interface = interface;
    return device;
}

}  // namespace

Result<std::vector<RnicDevice*>> list_devices() {
    static auto* last_listed = new std::vector<RnicDevice*>;
    auto interfaces = list_interfaces();
    if (!interfaces && last_listed->empty()) return interfaces.error();
    if (!interfaces) return *last_listed;
    for (auto* device : ever_seen()) {  // until they are found again
        device->interface.is_up = false;
        device->interface.addresses.clear();
    }
    last_listed->clear();
    for (auto& interface : *interfaces) last_listed->push_back(device_of(interface));
    return *last_listed;
}

RnicDevice* device_with_address(const std::string& address) {
    auto devices = list_devices();
    if (!devices) return refuse(devices.error().detail);
    // All of 127/8 is the loopback's, and it lists one address of it.
    bool looped = address.starts_with("127.");
    std::string_view wanted = address;
    if (wanted.starts_with("::ffff:") && wanted.find('.') != wanted.npos) wanted.remove_prefix(7);
    for (auto* device : *devices) {
        auto& own = device->interface.addresses;
        if (looped ? device->interface.is_loopback
                   : std::find(own.begin(), own.end(), wanted) != own.end())
            return device;
    }
    return refuse(ENODEV);
}

std::array<std::uint8_t, 6> hardware_address_of(const RnicDevice& device) {
    auto address = device.interface.hardware_address;
    if (address != std::array<std::uint8_t, 6>{}) return address;
    // Locally administered, and the same in every process.
    auto index = device.interface.index;
    return {0x02,
            'w',
            'e',
            'f',
            static_cast<std::uint8_t>(index >> 8),
            static_cast<std::uint8_t>(index)};
}

__be64 guid_of(const RnicDevice& device) {
    auto mac = hardware_address_of(device);
    std::uint8_t octets[8] = {
        static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    __be64 guid = 0;
    std::memcpy(&guid, octets, sizeof guid);
    return guid;
}

ibv_gid gid_of(const RnicDevice& device) {
    ibv_gid gid{};
    auto mac = hardware_address_of(device);
    std::copy(mac.begin(), mac.end(), gid.raw);
    return gid;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
    Hold hold;
    return make_or_refuse([&]() -> ibv_device** {
        auto listed = list_devices();
        if (!listed) return refuse(listed.error().detail);
        auto& devices = *listed;
        auto** list = new ibv_device*[devices.size() + 1];
        for (std::size_t i = 0; i < devices.size(); ++i) list[i] = &devices[i]->face;
        list[devices.size()] = nullptr;
        if (count) *count = static_cast<int>(devices.size());
        return list;
    });
}

void ibv_free_device_list(ibv_device** list) {
    delete[] list;
}

const char* ibv_get_device_name(ibv_device* device) {
    return device->name;
}

int ibv_get_device_index(ibv_device* device) {
    return of(*device).number;
}

__be64 ibv_get_device_guid(ibv_device* device) {
    Hold hold;
    return guid_of(of(*device));
}

}  // extern "C"
