# SPDX-License-Identifier: Apache-2.0
"""What is known of libiscsi 1.19's own faults, where they decide how a test of its suite ends.

Each was traced: by a debugger where the tool crashed, by its own source where it failed. Lines are
those of its version 1.19.0.
"""
LEGEND = """# libiscsi's test suite

Written by `./test suite` (`tests/interop/iscsi_suite_table.py`): every test of `iscsi-test-cu -t
ALL` of libiscsi 1.19, Debian 12's. The tool counts what it skips as passed; here it is told
apart, by what the tool prints. Each test has a process and a target of its own unless the column
says otherwise: some leave behind what the next trips over (`Sanitize.Reservations` a reservation,
`CompareAndWrite.InvalidDataOutSize` a changed command,
test_compareandwrite_invalid_dataout_size.c:57). The two of `iSCSITMF` share a process, since the
second reads what only the first sets.

· passed; skip: the test does not apply to that target, or its author did not find what it needs;
a number stands for the reason below, where that is the tool and not the target.

Over iser:// the suite runs on our own libraries (`weft run`). It gets memory that is zero
(`zeroed_malloc.c`) and is told to cache no allocations (LIBISCSI_CACHE_ALLOCATIONS=0), or it
would crash in every test: the memory of a second connection is used before it is written
(lib/iser.c:1423), and buffers of another size are put among its cached ones (lib/iser.c:334,
:540)."""

MANAGEMENT = """lib/iser.c:627: a task management request has no SCSI task, and over iSER is taken
for a command that has one. The tool dereferences a null pointer before anything is sent."""
CROWD = """lib/iser.c:507: there are 256 descriptors for commands, over iSER nobody looks at the
target's window, and the 257th command at a time takes a descriptor that is not there."""
LENGTHS = """lib/iser.c:556 and :577: over iSER a command that moves data and announces none is
refused before it is sent, which is what the test begins with; what was refused is freed and stays
in the list of what is waited for (:704)."""
SILENCE = """lib/iser.c:105: the test expects no answer for three seconds. After one, poll() says
that nothing came (lib/sync.c:65), which over iSER is taken for a failure."""
NO_DATA_OUT = """test_iscsi_datasn_invalid.c:98: the test spoils the numbers of Data-Out PDUs.
Over iSER there are none: data is read by RDMA."""
LEFT_OPEN = """lib/init.c:396: the test destroys its connection to lose the nexus. Over iSER the
descriptor that is looked at is never set, so the connection stays, and the nexus with it."""
SIZE = """lib/iser.c:545: over iSER the tool takes the length it allowed for the length that came,
and what lies behind the data for data. The residual that tells them apart it has."""
TAIL = """lib/iser.c:545 and iscsi-support.c:2761: over iSER the tool takes what lies behind the
data for data, and the test then looks at the last mode page of it, which is none."""
LARGE = """lib/iser.c:652: over iSER a command may move 256 KiB, the test writes 1 MiB. What was
refused had its number already, so all that follows waits for it in vain."""
NEIGHBOUR = """test_get_lba_status_unmap_single.c:120 and :134: the test asks for the status of
the block one behind those it unmapped, and expects the answer for the block one *physical* block
behind. Where physical blocks are larger, no answer is both."""

UNSENT = """iscsi-support.c:599 and :729: without `-d` the tool does not send what the test is
about, and neither does the test look for `-d`."""

NOTES = {("iser", name): reason for reason, names in {
    MANAGEMENT: ("PreventAllow.WarmReset", "PreventAllow.ColdReset", "PreventAllow.LUNReset",
                 "Reserve6.TargetColdReset", "Reserve6.TargetWarmReset", "Reserve6.LUNReset",
                 "Sanitize.Reset", "iSCSITMF.AbortTaskSimpleAsync", "iSCSITMF.LUNResetSimpleAsync",
                 "MultipathIO.Reset"),
    CROWD: ("Read10.Async", "Write10.Async", "MultipathIO.CompareAndWriteAsync"),
    LENGTHS: tuple(f"iSCSIResiduals.{test}" for test in (
        "Read10Invalid", "Read10Residuals", "Read12Residuals", "Read16Residuals",
        "Write10Residuals", "Write12Residuals", "Write16Residuals", "WriteVerify10Residuals",
        "WriteVerify12Residuals", "WriteVerify16Residuals")),
    SILENCE: ("iSCSIcmdsn.iSCSICmdSnTooHigh", "iSCSIcmdsn.iSCSICmdSnTooLow"),
    NO_DATA_OUT: ("iSCSIdatasn.iSCSIDataSnInvalid",),
    LEFT_OPEN: ("PreventAllow.ITNexusLoss", "Reserve6.ITNexusLoss"),
    SIZE: ("Inquiry.AllocLength", "Inquiry.BlockLimits", "ModeSense6.Residuals"),
    TAIL: ("Sanitize.Readonly",),
    LARGE: ("ExtendedCopy.Simple",),
}.items() for name in names}
NOTES |= {(column, "GetLBAStatus.UnmapSingle"): NEIGHBOUR for column in ("large", "iser-large")}
NOTES |= {("protected", name): UNSENT for name in (
    "PrinReadKeys.Truncate", "ProutRegister.Simple", "WriteVerify10.Dpo", "WriteVerify12.Dpo",
    "WriteVerify16.Dpo", "ProutReserve.Simple",
    *(f"ProutReserve.{what}{kind}" for what in ("Access", "Ownership")
      for kind in ("EA", "WE", "EARO", "WERO", "EAAR", "WEAR")))}
NOTES = {which: " ".join(reason.split()) for which, reason in NOTES.items()}
