// SPDX-License-Identifier: Apache-2.0
// Any octets as what an NBD server says to our client, which has one request of every kind under
// way, twice. Whatever it hears, each completes exactly once.
#include <deque>
#include <vector>

#include "fuzz/drive.hpp"
#include "nbd/client.hpp"

namespace weft {
namespace {

class Request final : public BlockRequest {
public:
    explicit Request(std::size_t kind) : memory_(kind < 2 ? 700 + kind : 0) {
        operation = static_cast<BlockOperation>(kind);
        length = kind < 2 ? memory_.size() : operation == BlockOperation::flush ? 0 : 5000;
        offset = operation == BlockOperation::flush ? 0 : 1000;
        pieces_ = {Buffer(memory_).first(memory_.size() / 3),
                   Buffer(memory_).subspan(memory_.size() / 3)};
        memory = pieces_;
        if (operation == BlockOperation::status) extents = room_;
    }
    void completed(Result<void>) override { ++completions; }
    int completions = 0;

private:
    std::vector<std::byte> memory_;
    std::array<Buffer, 2> pieces_;
    std::array<Extent, 3> room_;
};

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weft;
    int opened = 0;
    std::deque<Request> requests;
    nbd::Client client("disk", {[] {}, [&](Result<void>) { ++opened; }});
    auto submit_all = [&] {
        for (std::size_t kind = 0; kind <= static_cast<std::size_t>(BlockOperation::status); ++kind)
            client.submit(requests.emplace_back(kind));
    };
    submit_all();
    fuzz::drive(client, std::as_bytes(std::span(data, size)), [&, pieces = 0]() mutable {
        if (opened == 1 && requests.size() < 10) submit_all();
        if (++pieces == 60) client.disconnect();
        return false;
    });
    WEFT_CHECK(opened == 1);
    for (const auto& request : requests) WEFT_CHECK(request.completions == 1);
    return 0;
}
