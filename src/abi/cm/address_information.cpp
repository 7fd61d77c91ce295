// SPDX-License-Identifier: Apache-2.0
// rdma_getaddrinfo(): getaddrinfo(3), with the words of RDMA in question and answer. Of several
// addresses the first is given. Strings and addresses are malloc'ed, since some programs replace
// them with their own before they free the whole.
#include <netdb.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>

#include "abi/cm/objects.hpp"

namespace weft::abi {
namespace {

addrinfo question_for(const rdma_addrinfo& hints) {
    addrinfo question{};
    if (hints.ai_flags & RAI_PASSIVE) question.ai_flags |= AI_PASSIVE;
    if (hints.ai_flags & RAI_NUMERICHOST) question.ai_flags |= AI_NUMERICHOST;
    question.ai_family = hints.ai_family;
    switch (hints.ai_qp_type) {
        case 0:
            break;
        case IBV_QPT_UD:
            question.ai_socktype = SOCK_DGRAM;
            break;
        default:
            question.ai_socktype = SOCK_STREAM;
    }
    if (hints.ai_port_space == RDMA_PS_TCP) question.ai_protocol = IPPROTO_TCP;
    if (hints.ai_port_space == RDMA_PS_UDP || hints.ai_port_space == RDMA_PS_IPOIB)
        question.ai_protocol = IPPROTO_UDP;
    return question;
}

bool copy(sockaddr*& to, socklen_t& size, const sockaddr* from, socklen_t from_size) {
    if (!from || from_size == 0) return true;
    to = static_cast<sockaddr*>(std::malloc(from_size));
    if (!to) return false;
    std::memcpy(to, from, from_size);
    size = from_size;
    return true;
}

bool copy_answer(rdma_addrinfo& to, const rdma_addrinfo& hints, const addrinfo& answer) {
    bool of_datagrams = answer.ai_socktype == SOCK_DGRAM;
    to.ai_flags = hints.ai_flags & RAI_PASSIVE;
    to.ai_family = answer.ai_family;
    to.ai_qp_type = hints.ai_qp_type ? hints.ai_qp_type : of_datagrams ? IBV_QPT_UD : IBV_QPT_RC;
    to.ai_port_space = hints.ai_port_space ? hints.ai_port_space
                       : of_datagrams      ? RDMA_PS_UDP
                                           : RDMA_PS_TCP;
    bool is_own = hints.ai_flags & RAI_PASSIVE;
    auto& name = is_own ? to.ai_src_canonname : to.ai_dst_canonname;
    if (answer.ai_canonname) name = ::strdup(answer.ai_canonname);
    return is_own ? copy(to.ai_src_addr, to.ai_src_len, answer.ai_addr, answer.ai_addrlen)
                  : copy(to.ai_dst_addr, to.ai_dst_len, answer.ai_addr, answer.ai_addrlen);
}

/// 0, an error of getaddrinfo(3), or -1 and errno.
int ask(rdma_addrinfo& to, const char* node, const char* service, const rdma_addrinfo& hints) {
    auto question = question_for(hints);
    addrinfo* answer = nullptr;
    if (int refused = ::getaddrinfo(node, service, &question, &answer)) return refused;
    bool copied = copy_answer(to, hints, *answer);
    ::freeaddrinfo(answer);
    return copied ? 0 : fail_with(ENOMEM);
}

int repeat(rdma_addrinfo& to, const rdma_addrinfo& hints) {
    to.ai_flags = hints.ai_flags;
    to.ai_family = hints.ai_family;
    to.ai_qp_type = hints.ai_qp_type;
    to.ai_port_space = hints.ai_port_space;
    if (copy(to.ai_dst_addr, to.ai_dst_len, hints.ai_dst_addr, hints.ai_dst_len)) return 0;
    return fail_with(ENOMEM);
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                     rdma_addrinfo** found) {
    if (!found || (!node && !service && !hints)) return fail_with(EINVAL);
    auto* made = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
    if (!made) return fail_with(ENOMEM);
    constexpr rdma_addrinfo none{};
    auto& wishes = hints ? *hints : none;
    int outcome = node || service ? ask(*made, node, service, wishes) : repeat(*made, wishes);
    if (outcome == 0 && !made->ai_src_addr &&
        !copy(made->ai_src_addr, made->ai_src_len, wishes.ai_src_addr, wishes.ai_src_len))
        outcome = fail_with(ENOMEM);
    if (outcome != 0) {
        rdma_freeaddrinfo(made);
        return outcome;
    }
    *found = made;
    return 0;
}

void rdma_freeaddrinfo(rdma_addrinfo* found) {
    while (found) {
        auto* one = found;
        found = found->ai_next;
        for (void* part :
             {static_cast<void*>(one->ai_src_addr), static_cast<void*>(one->ai_dst_addr),
              static_cast<void*>(one->ai_src_canonname), static_cast<void*>(one->ai_dst_canonname),
              one->ai_route, one->ai_connect})
            std::free(part);
        std::free(one);
    }
}

}  // extern "C"
