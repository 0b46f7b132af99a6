import hashlib

import pytest

from iojoule.api.state import api_keys, tables
from iojoule.api.state.api_keys import Scope
from iojoule.api.state.errors import NotFoundError
from iojoule.api.state.place import State


def test_a_key_opens_until_it_is_revoked(state: State) -> None:
    with state.database.write() as connection:
        made, text = api_keys.create(connection, "grid", Scope.WRITE)
        assert api_keys.opened_by(api_keys.valid(connection), text) == made
        assert api_keys.revoke(connection, made.id).revoked_at is not None
        assert api_keys.opened_by(api_keys.valid(connection), text) is None
        assert [one.id for one in api_keys.listed(connection)] == [made.id]


def test_what_is_kept_does_not_give_the_key_back(state: State) -> None:
    with state.database.write() as connection:
        _, text = api_keys.create(connection, "grid", Scope.READ)
        row = connection.execute(tables.api_keys.select()).mappings().one()
    secret = text.split("_", 2)[2]
    assert all(secret not in str(value) for value in row.values())
    assert row["secret_sha256"] == hashlib.sha256(secret.encode()).hexdigest()


def test_no_other_text_opens(state: State) -> None:
    with state.database.write() as connection:
        made, text = api_keys.create(connection, "grid", Scope.READ)
        _, other = api_keys.create(connection, "other", Scope.ADMIN)
        keys = api_keys.valid(connection)
    mixed = f"iojoule_{made.id}_{other.split('_', 2)[2]}"
    for wrong in ("", made.id, text[:-1], text + "x", text.upper(), mixed, "é" * 63):
        assert api_keys.opened_by(keys, wrong) is None


def test_scopes_include_those_before() -> None:
    includes = {(one, other): one.includes(other) for one in Scope for other in Scope}
    assert includes[Scope.ADMIN, Scope.READ]
    assert includes[Scope.WRITE, Scope.WRITE]
    assert not includes[Scope.READ, Scope.WRITE]
    assert not includes[Scope.WRITE, Scope.ADMIN]


def test_the_last_use_is_the_latest_that_anybody_recorded(state: State) -> None:
    with state.database.write() as connection:
        made, _ = api_keys.create(connection, "grid", Scope.READ)
        at = []
        for seconds_ago in (10.0, 100.0, 1.0):  # replicas record in any order
            api_keys.record_use(connection, {made.id: seconds_ago, "0" * 12: 0.0})
            at.append(api_keys.find(connection, made.id).last_used_at or 0.0)
    assert at[0] == at[1]
    assert at[2] - at[0] == pytest.approx(9.0, abs=1.0)


def test_a_key_expires_at_its_time(state: State) -> None:
    with state.database.write() as connection:
        made, _ = api_keys.create(connection, "grid", Scope.READ, expires_at=100.0)
        never, _ = api_keys.create(connection, "grid", Scope.READ)
    assert [made.expired(at) for at in (99.9, 100.0, 100.1)] == [False, True, True]
    assert not never.expired(1e12)


def test_an_unknown_key_cannot_be_revoked(state: State) -> None:
    with state.database.write() as connection, pytest.raises(NotFoundError, match="key list"):
        api_keys.revoke(connection, "0" * 12)
