"""The plan of what goes keeps what must stay, whatever is in the store."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from anfbuild.engine.plan import Limits, Plan, plan
from anfbuild.engine.survey import Blob, Entry

NOW = 1000.0
KEYS, SHAS = "abcdef", "stuvwxyz"


@dataclasses.dataclass(frozen=True)
class Case:
    entries: list[Entry]
    blobs: list[Blob]
    pinned: frozenset[str]
    limits: Limits

    @property
    def plan(self) -> Plan:
        return plan(self.entries, self.blobs, self.pinned, NOW, self.limits)


times = st.floats(-500, 1500)
some_entries = st.lists(
    st.builds(
        Entry,
        key=st.sampled_from(KEYS),
        step=st.just("step"),
        recipes=st.just(frozenset({"r"})),
        used=times,
        blobs=st.dictionaries(st.sampled_from(SHAS), st.just(1), max_size=4),
        needs=st.frozensets(st.sampled_from(KEYS), max_size=2),
    ),
    unique_by=lambda entry: entry.key,
)
some_blobs = st.lists(
    st.builds(Blob, sha=st.sampled_from(SHAS), size=st.integers(0, 50), used=times), unique_by=lambda blob: blob.sha
)
some_limits = st.builds(
    Limits,
    max_size=st.none() | st.integers(0, 300),
    older_than=st.none() | st.floats(0, 1500),
    grace=st.floats(0, 600),
)
cases = st.builds(Case, some_entries, some_blobs, st.frozensets(st.sampled_from(KEYS), max_size=2), some_limits)


def needed(case: Case) -> set[str]:
    by_key = {entry.key: entry for entry in case.entries}
    kept = set(case.pinned)
    while more := {need for key in kept if key in by_key for need in by_key[key].needs} - kept:
        kept |= more
    return kept


def may_go(case: Case) -> list[Entry]:
    return [e for e in case.entries if e.key not in needed(case) and NOW - e.used > case.limits.grace]


@given(cases)
def test_nothing_pinned_or_within_the_grace_goes(case: Case) -> None:
    assert {entry.key for entry in case.plan.entries} <= {entry.key for entry in may_go(case)}
    assert all(NOW - blob.used > case.limits.grace for blob in case.plan.blobs)


@given(cases)
def test_no_entry_that_stays_loses_a_blob_and_no_other_old_blob_stays(case: Case) -> None:
    gone = {entry.key for entry in case.plan.entries}
    named = {sha for entry in case.entries if entry.key not in gone for sha in entry.blobs}
    expected = {b.sha for b in case.blobs if b.sha not in named and NOW - b.used > case.limits.grace}
    assert {blob.sha for blob in case.plan.blobs} == expected


@given(cases)
def test_the_limits_are_kept_or_all_that_may_go_goes(case: Case) -> None:
    gone = {entry.key for entry in case.plan.entries}
    left = [entry for entry in may_go(case) if entry.key not in gone]
    assert case.plan.remaining == sum(blob.size for blob in case.blobs) - case.plan.freed
    if left and case.limits.max_size is not None:
        assert case.plan.remaining <= case.limits.max_size
    if case.limits.older_than is not None:
        assert all(NOW - entry.used <= case.limits.older_than for entry in left)


@given(cases)
def test_the_least_recently_used_go_first_and_none_without_need(case: Case) -> None:
    gone = case.plan.entries
    left = [entry.used for entry in may_go(case) if entry not in gone]
    assert [entry.used for entry in gone] == sorted(entry.used for entry in gone)
    assert not gone or not left or gone[-1].used <= min(left)
    if gone and case.limits.older_than is None:
        assert case.limits.max_size is not None
        others = [entry for entry in case.entries if entry not in gone[:-1]]
        without_the_last = plan(others, case.blobs, frozenset(), NOW, Limits(grace=case.limits.grace))
        assert without_the_last.remaining > case.limits.max_size


@given(cases, st.floats(1000.1, 1e12))
def test_what_was_used_in_the_future_was_used_now(case: Case, later: float) -> None:
    future = [dataclasses.replace(entry, used=later) for entry in case.entries]
    assert plan(future, case.blobs, case.pinned, NOW, case.limits).entries == ()


def test_without_limits_only_what_nobody_names_goes() -> None:
    entry = Entry("a", "step", frozenset({"r"}), 0.0, {"s": 1})
    found = plan([entry], [Blob("s", 1, 0.0), Blob("t", 2, 0.0)], frozenset(), NOW, Limits(grace=10))
    assert found == Plan((), (Blob("t", 2, 0.0),), 1)
