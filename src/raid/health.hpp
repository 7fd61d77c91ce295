// SPDX-License-Identifier: Apache-2.0
// Which boxes a plan can count on, stripe by stripe: a box that is being rebuilt is there for the
// stripes that are done and absent for the rest.
#pragma once

#include <memory>
#include <optional>

#include "base/fixed_vector.hpp"
#include "raid/bands.hpp"
#include "raid/limits.hpp"
#include "raid/region_map.hpp"

namespace weft::raid {

struct Absence {
    BoxIndex box{};
    std::uint64_t rebuilt_stripes = 0;  ///< stripes below this are whole on the box
    std::uint32_t ahead = 0;    ///< and those of the next that have a bit here, from the first on
    bool takes_orders = false;  ///< it is there, and lacks some stripes
    /// The stripes it lacked when its rebuilding began; none: all.
    std::shared_ptr<const RegionMap> lacks;
    /// One it has and cannot give: what is there is not what was written.
    std::optional<std::uint64_t> unreadable{};
    /// Of those that would be whole by now: what could not be made, and was passed over.
    std::shared_ptr<const RegionMap> passed{};

    bool has(std::uint64_t stripe) const {
        if (unreadable == stripe || (passed && passed->contains(stripe))) return false;
        if (stripe < rebuilt_stripes) return true;
        const std::uint64_t beyond = stripe - rebuilt_stripes;
        if (beyond < limits::stripes_ahead && (ahead >> beyond & 1) != 0) return true;
        return lacks && !lacks->contains(stripe);
    }
    bool operator==(const Absence&) const = default;
};

class Health {
public:
    Health() = default;

    /// Marks a box absent, or sets how far its rebuilding has come. False: no room for one more.
    bool lose(const Absence& absence) {
        for (auto& known : absences_)
            if (known.box == absence.box) return known = absence, true;
        if (absences_.full()) return false;
        absences_.push_back(absence);
        return true;
    }
    bool lose(BoxIndex box, std::uint64_t rebuilt_stripes = 0) {
        return lose({.box = box,
                     .rebuilt_stripes = rebuilt_stripes,
                     .ahead = 0,
                     .takes_orders = rebuilt_stripes > 0,
                     .lacks = nullptr});
    }
    /// A box that is there cannot give one stripe. False: no room for one more.
    bool cannot_read(BoxIndex box, std::uint64_t stripe) {
        for (auto& known : absences_)
            if (known.box == box) return known.unreadable = stripe, true;
        return lose({.box = box,
                     .rebuilt_stripes = ~std::uint64_t{0},
                     .ahead = 0,
                     .takes_orders = true,
                     .lacks = nullptr,
                     .unreadable = stripe});
    }
    void regain(BoxIndex box) {
        FixedVector<Absence, limits::absences> kept;
        for (const auto& absence : absences_)
            if (absence.box != box) kept.push_back(absence);
        absences_ = kept;
    }

    bool whole() const { return absences_.empty(); }
    const FixedVector<Absence, limits::absences>& absences() const { return absences_; }

    /// The boxes that do not have this stripe.
    Mask absent_at(std::uint64_t stripe) const {
        Mask absent = 0;
        for (const auto& absence : absences_)
            if (!absence.has(stripe)) absent |= only(number(absence.box));
        return absent;
    }
    /// The boxes that are not there at all.
    Mask out_of_reach() const {
        Mask away = 0;
        for (const auto& absence : absences_)
            if (!absence.takes_orders) away |= only(number(absence.box));
        return away;
    }
    /// The columns this stripe lacks.
    Mask lost_columns(const Layout& layout, std::uint64_t stripe) const {
        Mask absent = absent_at(stripe), lost = 0;
        for (std::uint8_t box = 0; box < layout.boxes(); ++box)
            if (contains(absent, box)) lost |= only(layout.column_of(stripe, BoxIndex{box}));
        return lost;
    }

private:
    FixedVector<Absence, limits::absences> absences_;
};

}  // namespace weft::raid
