// SPDX-License-Identifier: Apache-2.0
#include "node/reservation_file.hpp"

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "scsi/reservations.hpp"
#include "wire/scsi_stored_reservations.hpp"

namespace weft::node {
namespace {

constexpr auto trailer_size = wire_size<wire::StoredChecksum>();

bool may_be_in_a_name(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == ':' ||
           letter == '_';
}

/// Takes so many octets from the front.
Result<ConstBuffer> take(ConstBuffer& rest, std::size_t count) {
    if (count > rest.size()) return Error{.code = Code::truncated};
    const auto taken = rest.first(count);
    rest = rest.subspan(count);
    return taken;
}

}  // namespace

std::string ReservationFile::path_for(const std::string& folder, std::string_view target) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string path = folder + "/";
    for (const char letter : target) {
        if (may_be_in_a_name(letter)) {
            path += letter;
            continue;
        }
        const auto octet = static_cast<unsigned char>(letter);
        path += '%';
        path += digits[octet >> 4];
        path += digits[octet & 15];
    }
    return path + ".reservations";
}

Result<std::unique_ptr<ReservationFile>> ReservationFile::open(World& world, std::string path) {
    std::unique_ptr<ReservationFile> file(new ReservationFile(world, std::move(path)));
    auto octets = world.read_file(file->path_);
    if (!octets && octets.error().code == Code::not_found) return file;
    if (!octets) return octets.error();
    if (auto good = file->read(*octets); !good) return good.error();
    return file;
}

Result<void> ReservationFile::read(ConstBuffer octets) {
    if (octets.size() < wire_size<wire::StoredTarget>() + trailer_size)
        return Error{.code = Code::truncated};
    auto rest = octets.first(octets.size() - trailer_size);
    WEFT_TRY(const auto checksum, decode<wire::StoredChecksum>(octets.subspan(rest.size())));
    if (checksum.crc32c != crc32c(rest)) return Error{.code = Code::malformed};
    WEFT_TRY(const auto header, decode<wire::StoredTarget>(rest));
    rest = rest.subspan(wire_size<wire::StoredTarget>());
    for (std::uint32_t i = 0; i < header.count; ++i) {
        WEFT_TRY(const auto unit, decode<wire::StoredUnit>(rest));
        rest = rest.subspan(wire_size<wire::StoredUnit>());
        WEFT_TRY(const auto identifier, take(rest, unit.identifier_length));
        WEFT_TRY(const auto reservations, take(rest, unit.reservations_length));
        scsi::Reservations readable;
        if (auto good = readable.restore(reservations); !good) return good.error();
        units_[std::string(text_of(identifier))] = {reservations.begin(), reservations.end()};
    }
    return rest.empty() ? Result<void>() : Error{.code = Code::malformed};
}

Result<std::vector<std::byte>> ReservationFile::load(std::string_view unit) {
    const auto found = units_.find(unit);
    if (found == units_.end()) return Error{.code = Code::not_found};
    return found->second;
}

void ReservationFile::save(std::string_view unit, ConstBuffer state,
                           std::function<void(Result<void>)> done) {
    units_[std::string(unit)] = {state.begin(), state.end()};
    world_.replace_file(path_, written(), std::move(done));
}

std::vector<std::byte> ReservationFile::written() const {
    std::vector<std::byte> octets;
    auto append = [&](ConstBuffer more) { octets.insert(octets.end(), more.begin(), more.end()); };
    append(encoded(wire::StoredTarget{static_cast<std::uint32_t>(units_.size())}));
    for (const auto& [identifier, reservations] : units_) {
        append(encoded(wire::StoredUnit{
            .identifier_length = static_cast<std::uint32_t>(identifier.size()),
            .reservations_length = static_cast<std::uint32_t>(reservations.size())}));
        append(bytes_of(identifier));
        append(reservations);
    }
    append(encoded(wire::StoredChecksum{crc32c(octets)}));
    return octets;
}

}  // namespace weft::node
