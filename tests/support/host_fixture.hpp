// SPDX-License-Identifier: Apache-2.0
// A host on a simulated machine, attached to a controller without an array; the parameter says
// whether its session is over RDMA.
#pragma once

#include <gtest/gtest.h>

#include "node/host_node.hpp"
#include "support/host_controller.hpp"
#include "support/test_request.hpp"

namespace weft::test {

class HostTest : public testing::TestWithParam<bool> {
protected:
    static constexpr std::uint64_t plenty = 20'000'000;
    static constexpr std::size_t size = 8 << 20;

    void SetUp() override {
        controller.world_step = [this] { world.step(); };
    }
    void TearDown() override {
        if (!host) return;
        host->leave();
        run_until([&] { return host->finished(); });
        host.reset();
    }
    void attach() {
        node::HostNode::Options options;
        options.controller = controllers.front();
        options.others.assign(controllers.begin() + 1, controllers.end());
        options.volume = volume;
        options.name = "desk";
        options.over_rdma = GetParam();
        options.disk.patience = patience;
        host = std::make_unique<node::HostNode>(
            world.host("10.0.0.9"), options,
            node::HostNode::Holder{.opened = [this](auto how) { opened = how; },
                                   .news = [this](const auto& text) { news.push_back(text); }});
        run_until([&] { return opened.has_value(); });
    }
    void run_until(const std::function<bool()>& done) {
        for (std::uint64_t i = 0; i < plenty && !done() && world.step(); ++i) {
        }
        ASSERT_TRUE(done());
    }
    void submit(TestRequest& request) { host->device().submit(request); }
    void carry_out(TestRequest& request) {
        submit(request);
        run_until([&] { return request.done(); });
    }
    static void fill(TestRequest& request, std::uint8_t from) {
        for (std::size_t i = 0; i < request.octets.size(); ++i)
            request.octets[i] = static_cast<std::byte>(from + i / 4096 + i % 251);
    }
    bool holds(const TestRequest& request) const {
        return std::ranges::equal(
            std::span(controller.memory).subspan(request.offset, request.length), request.octets);
    }

    sim::World world{11};
    std::string volume = "photos";
    std::vector<Address> controllers{HostController::where()};
    Duration patience = std::chrono::seconds(120);
    HostController controller{world, size};
    std::unique_ptr<node::HostNode> host;
    std::optional<std::optional<std::string>> opened;
    std::vector<std::string> news;
};
}  // namespace weft::test
