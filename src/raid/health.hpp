// SPDX-License-Identifier: Apache-2.0
// Which boxes a plan can count on, stripe by stripe: a box that is being rebuilt is there for the
// stripes that are done and absent for the rest.
#pragma once

#include "base/fixed_vector.hpp"
#include "raid/bands.hpp"
#include "raid/limits.hpp"

namespace weft::raid {

struct Absence {
    BoxIndex box{};
    std::uint64_t rebuilt_stripes = 0;  ///< stripes below this are whole on the box

    bool operator==(const Absence&) const = default;
};

class Health {
public:
    Health() = default;

    /// Marks a box absent, or sets how far its rebuilding has come. False: no room for one more.
    bool lose(BoxIndex box, std::uint64_t rebuilt_stripes = 0) {
        for (auto& absence : absences_)
            if (absence.box == box) return absence.rebuilt_stripes = rebuilt_stripes, true;
        if (absences_.full()) return false;
        absences_.push_back({.box = box, .rebuilt_stripes = rebuilt_stripes});
        return true;
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
            if (stripe >= absence.rebuilt_stripes) absent |= only(number(absence.box));
        return absent;
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
