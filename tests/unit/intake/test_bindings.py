"""Who talks to whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.intake.bindings import Binding, Bindings, Contact, DmScope, Match
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.session_key import KeyKind

OPS = Binding(match=Match(door="hub", channel="#ops"), agent="scout")
ANN = Binding(match=Match(door="hub", peer="ann"), agent="friend")
WORK = Binding(match=Match(door="hub", account="work"), agent="clerk")
HUB = Binding(match=Match(door="hub"), agent="greeter")
ALL = Bindings([HUB, WORK, OPS, ANN])


@pytest.mark.parametrize(
    ("contact", "agent"),
    [
        (Contact(door="hub", channel="#ops", peer="ann", account="work"), "friend"),
        (Contact(door="hub", channel="#ops", peer="bob", account="work"), "scout"),
        (Contact(door="hub", channel="#other", account="work"), "clerk"),
        (Contact(door="hub", peer="bob"), "greeter"),
        (Contact(door="mail", peer="ann"), "main"),
    ],
)
def test_the_most_specific_binding_wins_whatever_its_place(contact: Contact, agent: str):
    assert ALL.resolve(contact, is_operator=True).agent_id == agent


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        (DmScope.MAIN, "agent:main:main"),
        (DmScope.PER_PEER, "agent:main:dm:ann"),
        (DmScope.PER_CHANNEL_PEER, "agent:main:mail:dm:ann"),
        (DmScope.PER_ACCOUNT_CHANNEL_PEER, "agent:main:mail:work:dm:ann"),
    ],
)
def test_direct_conversations_of_the_operator_follow_the_scope(scope: DmScope, key: str):
    contact = Contact(door="mail", account="work", peer="ann")

    assert Bindings(dm_scope=scope).resolve(contact, is_operator=True).session_key == key


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        (DmScope.MAIN, "agent:main:mail:dm:ann"),
        (DmScope.PER_PEER, "agent:main:mail:dm:ann"),
        (DmScope.PER_CHANNEL_PEER, "agent:main:mail:dm:ann"),
        (DmScope.PER_ACCOUNT_CHANNEL_PEER, "agent:main:mail:work:dm:ann"),
    ],
)
def test_strangers_share_a_conversation_with_nobody(scope: DmScope, key: str):
    contact = Contact(door="mail", account="work", peer="ann")
    links = {"ann": ["mail:ann"]}
    found = Bindings(dm_scope=scope).resolve(contact, is_operator=False)
    linked = Bindings(dm_scope=scope, identity_links=links).resolve(contact, is_operator=False)

    assert found.session_key == key
    assert linked.session_key == "agent:main:dm:ann"


@pytest.mark.parametrize("scope", list(DmScope))
@pytest.mark.parametrize("door", ["hub", "a2a", "telegram"])
@pytest.mark.parametrize("peer", ["scout", "", "main", ".."])
def test_a_stranger_never_reaches_main(scope: DmScope, door: str, peer: str):
    bindings = Bindings(dm_scope=scope, identity_links={"me": ["somebody"]})
    bound = bindings.resolve(Contact(door=door, peer=peer), is_operator=False)

    found = keys.parse(bound.session_key)

    assert (found.kind, found.door, found.id) == (KeyKind.DM, door, peer)
    assert bound.session_key == f"agent:main:{bound.place}"


def test_the_place_of_a_contact_is_its_room_or_peer_whatever_the_thread():
    room = Contact(door="chat", group="7", peer="ann", thread="3")
    bindings = Bindings([Binding(match=Match(door="chat"), agent="scout")])

    found = bindings.resolve(room, is_operator=False)

    assert found.session_key == "agent:scout:chat:group:7:thread:3"
    assert found.place == "chat:group:7"


@pytest.mark.parametrize("link", ["Telegram:123X", "123x", "TELEGRAM:123x"])
@pytest.mark.parametrize("peer", ["123X", "telegram:123x", "Telegram:123X"])
def test_links_are_found_with_and_without_the_door_in_any_case(link: str, peer: str):
    bindings = Bindings(dm_scope=DmScope.PER_CHANNEL_PEER, identity_links={"ann": [link]})

    found = bindings.resolve(Contact(door="telegram", peer=peer), is_operator=True).session_key

    assert found == "agent:main:dm:ann"


def test_a_link_at_one_door_says_nothing_about_another():
    bindings = Bindings(dm_scope=DmScope.PER_CHANNEL_PEER, identity_links={"ann": ["telegram:123"]})

    found = bindings.resolve(Contact(door="mail", peer="123"), is_operator=True).session_key

    assert found == "agent:main:mail:dm:123"


@pytest.mark.parametrize(
    ("key", "owner", "place"),
    [
        ("web:1", "operator", "agent:main:unified"),
        ("web:1:thread:2", "operator", "agent:main:unified"),
        ("agent:scout:web:1", "operator", "agent:scout:unified"),
        ("web:1", "somebody", "agent:main:web:1"),
        ("web:dm:ann", "operator", "agent:main:web:dm:ann"),
        ("main", "operator", "agent:main:main"),
    ],
)
def test_unified_web_chats_of_the_operator_share_one_session(key: str, owner: str, place: str):
    canonical = keys.canonical(key)

    assert Bindings(is_unified=True).answering_session(canonical, owner) == place
    assert Bindings().answering_session(canonical, owner) == canonical


def test_rooms_and_threads_are_apart_from_direct_conversations():
    room = Contact(door="hub", channel="#Ops", peer="ann", thread="7")

    for is_operator in (True, False):
        found = Bindings().resolve(room, is_operator=is_operator).session_key
        assert found == "agent:main:hub:channel:~23~4fps:thread:7"


def test_two_bindings_for_the_same_contacts_are_refused():
    with pytest.raises(InvalidInput, match="bindings: two bindings match the same contacts"):
        Bindings([OPS, Binding(match=OPS.match, agent="other")])


@given(
    st.lists(st.text(max_size=20), min_size=2, max_size=2, unique=True),
    st.sampled_from(list(DmScope)),
)
def test_two_peers_never_share_a_session_unless_they_are_linked(peers: list[str], scope: DmScope):
    bindings = Bindings(dm_scope=scope)

    found = {
        bindings.resolve(Contact(door="x", peer=peer), is_operator=False).session_key
        for peer in peers
    }

    assert len(found) == 2
    assert all(keys.canonical(key) == key for key in found)
