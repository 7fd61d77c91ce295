// SPDX-License-Identifier: Apache-2.0
// The persistent reservations of a target's units, in one small file: read when the target is
// offered, replaced as a whole whenever one of them changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scsi/reservation_store.hpp"
#include "weft/world.hpp"

namespace weft::node {

class ReservationFile final : public scsi::ReservationStore {
public:
    /// Where a target's reservations are kept. Its name is part of the file's, with %XX for what a
    /// file's name had better not have.
    static std::string path_for(const std::string& folder, std::string_view target);
    /// No file is as good as an empty one. `malformed`: it is damaged, which must not be taken for
    /// "nobody has reserved anything".
    static Result<std::unique_ptr<ReservationFile>> open(World& world, std::string path);

    Result<std::vector<std::byte>> load(std::string_view unit) override;
    void save(std::string_view unit, ConstBuffer state,
              std::function<void(Result<void>)> done) override;

private:
    ReservationFile(World& world, std::string path) : world_(world), path_(std::move(path)) {}
    Result<void> read(ConstBuffer octets);
    std::vector<std::byte> written() const;

    World& world_;
    std::string path_;
    std::map<std::string, std::vector<std::byte>, std::less<>> units_;
};

}  // namespace weft::node
