// SPDX-License-Identifier: Apache-2.0
#include "abi/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <tuple>

#include "linux/system_error.hpp"

namespace weft::abi {
namespace {

unsigned mtu_of(const std::string& name) {
    int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0) return 0;
    ifreq asked{};
    std::strncpy(asked.ifr_name, name.c_str(), IFNAMSIZ - 1);
    bool known = ::ioctl(any, SIOCGIFMTU, &asked) == 0;
    ::close(any);
    return known ? static_cast<unsigned>(asked.ifr_mtu) : 0;
}

void add_address(Interface& to, const sockaddr& address) {
    char text[INET6_ADDRSTRLEN];
    const void* octets = nullptr;
    if (address.sa_family == AF_INET)
        octets = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    if (address.sa_family == AF_INET6)
        octets = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (octets && ::inet_ntop(address.sa_family, octets, text, sizeof text))
        to.addresses.emplace_back(text);
    if (address.sa_family == AF_PACKET) {
        auto& hardware = reinterpret_cast<const sockaddr_ll&>(address);
        if (hardware.sll_halen == to.hardware_address.size())
            std::memcpy(to.hardware_address.data(), hardware.sll_addr, hardware.sll_halen);
    }
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) < 0) return linux::system_error(errno);
    std::map<std::string, Interface> found;
    for (auto* each = all; each; each = each->ifa_next) {
        auto& interface = found[each->ifa_name];
        interface.name = each->ifa_name;
        interface.is_loopback = each->ifa_flags & IFF_LOOPBACK;
        interface.is_up = each->ifa_flags & IFF_UP;
        if (each->ifa_addr) add_address(interface, *each->ifa_addr);
    }
    ::freeifaddrs(all);

    std::vector<Interface> listed;
    for (auto& [name, interface] : found) {
        interface.index = ::if_nametoindex(name.c_str());
        interface.mtu = mtu_of(name);
        listed.push_back(std::move(interface));
    }
    std::sort(listed.begin(), listed.end(), [](const Interface& a, const Interface& b) {
        return std::tuple(!a.is_usable(), a.is_loopback, a.index) <
               std::tuple(!b.is_usable(), b.is_loopback, b.index);
    });
    return listed;
}

}  // namespace weft::abi
