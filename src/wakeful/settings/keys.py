"""Every key of the settings file: what it means, and which numbers it takes.

`*` stands for a name of the operator's choice, `[]` for each item of a list. The reference page,
the JSON Schema and the checks all read this table.
"""

import re

import msgspec

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

DAY_S = 86_400


class Key(Record):
    """One row of the reference."""

    means: str
    low: float | None = None
    high: float | None = None
    is_secret: bool = False  # its value is never shown
    wants: str | None = None  # what its text is, where that is more than text


def _key(means: str, low: float | None = None, high: float | None = None) -> Key:
    return Key(means=means, low=low, high=high)


_QUEUE = {
    "mode": _key("What a message does that arrives while the agent is busy."),
    "debounce_ms": _key("How long the first message waits for more of them.", 0, 3_600_000),
    "debounce_max_ms": _key("The longest wait since the first message.", 0, 3_600_000),
    "cap": _key("How many messages may wait in one session.", 1, 10_000),
    "drop": _key("What happens to the messages beyond the cap."),
}
_PROACTIVE = {
    "enabled": _key("Whether it wakes by itself."),
    "tick_interval_secs": _key("Seconds from the end of a turn to the next tick.", 1, DAY_S),
    "jitter_pct": _key("By how many percent that varies.", 0, 100),
    "max_idle_secs": _key("The longest time without a wake, sleeps included.", 60, DAY_S),
    "initial_greeting": _key("Whether the first tick of a session is a greeting."),
    "cache_aware_schedule": _key("Whether sleeps end before prompt caches do, or long after."),
    "allow_short_intervals": _key("Whether it may tick more often than once a minute."),
    "daily_turn_budget": _key("Ticks and wakes in 24 hours; 0: any number.", 0, 100_000),
    "light_context": _key("Whether a tick leaves the conversation out."),
}
_A_TIME = "a time such as 07:00"
_HOURS = {
    "start": Key(means="When they begin, from 00:00 to 23:59.", wants=_A_TIME),
    "end": Key(means="When they are over, up to 24:00; they may go over midnight.", wants=_A_TIME),
    "timezone": _key("On whose clocks: `user`, `local` (the machine's) or an IANA name."),
}
_HEARTBEAT = {
    "every": _key("How often it looks after things: 30m, 2h; 0: never."),
    "prompt": _key("What it is asked; default: to follow HEARTBEAT.md of its workspace."),
    "target": Key(
        means="Where its answer goes: `last` (where people spoke last), `none` or a route.",
        wants="last, none or a route such as {door: mail, address: ann}",
    ),
    "session": _key("The session in which it looks after things."),
    "model": _key("Another model for this; default: the session's."),
    "ack_max_chars": _key("Up to how many characters beside HEARTBEAT_OK say nothing.", 0, 100_000),
    "include_reasoning": _key("Whether what it thought is sent along."),
    "light_context": _key(
        "Whether it reads only its tasks, AGENTS.md and what happened: neither the conversation nor"
        " other files of the workspace."
    ),
    "active_hours": _key("The hours in which it does so; default: always."),
    **{f"active_hours.{name}": key for name, key in _HOURS.items()},
}
_INBOX_SOURCE = {
    "agent": _key("Whose inbox the source writes to; default: the first agent's."),
    "session_prefix": _key("Below which it may choose a session itself; default: nowhere."),
    "priority_cap": _key("The most urgent that its items may be; what is more urgent is lowered."),
    "depth": _key("How many of its items may wait.", 1, 1_000_000),
    "per_minute": _key("How many it may post in a minute; 0: any number.", 0, 100_000),
    "dedup_window_s": _key("Seconds in which a key is not taken twice.", 1, 7 * DAY_S),
    "storm.turns": _key("As the `storm.turns` of everybody, for this source.", 1, 100_000),
    "storm.window_s": _key("As the `storm.window_s` of everybody, for this source.", 1, DAY_S),
}
_DAY_LIMITS = {
    "money_per_day": _key("US dollars in a day of your zone; null: as much as the agent.", 0, 1e6),
    "turns_per_day": _key("Turns in a day.", 0, 1_000_000),
}
_BUDGET = {
    "money_per_day": _key("US dollars in a day of your zone; null: any amount.", 0, 1e6),
    "turns_per_day": _key(
        "Turns in a day; what you say yourself does not count. null: any number.", 0, 1_000_000
    ),
    "money_per_chain": _key(
        "US dollars for everything that one first cause leads to; null: any amount.", 0, 1e6
    ),
    "reserve_for_people": _key(
        "The part of the money that only what people said or caused may spend.", 0, 1
    ),
    "share_of_a_source": _key(
        "The part of the turns and the money that each source from outside may use, a token for"
        " instance, where `sources` does not name it; 1: all of it.",
        0,
        1,
    ),
    **{f"origins.*.{name}": key for name, key in _DAY_LIMITS.items()},
    **{f"sources.*.{name}": key for name, key in _DAY_LIMITS.items()},
}
_AGENT = {
    "model": _key("Its voice: `provider:model`, or `demo`, which needs no network."),
    "fallback_models": _key("Who answers instead when it cannot for now, in this order."),
    "thinking": _key("How much it thinks; a level that the model lacks becomes the next lower."),
    "instructions": _key("What the agent is told about itself."),
    "instructions_file": _key("A file with the instructions."),
    "workspace": _key("Its folder; default `workspaces/{id}` in the home folder."),
    "shared_files": _key("Files and folders of it that turns from outside may read; default none."),
    "tools": _key(
        "The tools it has; default all but `shell` and `web_fetch`, and all of `tools_from`."
    ),
    "mcp": _key("The MCP servers whose tools it has, by their names in `mcp_servers`."),
    "limits.steps": _key("Model replies in one turn.", 1, 10_000),
    "limits.tool_calls": _key("Tool calls in one turn.", 0, 100_000),
    "limits.tokens": _key("Tokens in one turn, read and written.", 1, 1_000_000_000),
    "limits.money": _key("Money in one turn.", 0, 1_000_000),
    "limits.wall_s": _key("Seconds in one turn.", 1, DAY_S),
    "limits.automation_wall_s": _key("Seconds in one turn of an automation.", 1, DAY_S),
    "limits.attempts": _key("Crashes before a turn is given up.", 1, 100),
    "limits.retries": _key("Failed questions to the model before a turn fails.", 0, 100),
    "limits.first_token_s": _key("Seconds until a model begins to answer.", 1, DAY_S),
    "limits.idle_s": _key("Seconds between two signs of life of a model.", 1, DAY_S),
    "limits.answer_s": _key("Seconds for one answer of a model.", 1, DAY_S),
    "compaction.enabled": _key("Whether long conversations are compacted into summaries."),
    "compaction.reserve_tokens": _key("Tokens left free for the answer.", 0, 10_000_000),
    "compaction.reserve_tokens_floor": _key(
        "At least so many; never more than a quarter of the window.", 0, 10_000_000
    ),
    "compaction.keep_recent_tokens": _key("Tokens that stay word for word.", 0, 10_000_000),
    "compaction.memory_flush.enabled": _key("Whether memories are written before that."),
    "compaction.memory_flush.soft_threshold_tokens": _key(
        "How many tokens before the reserve begins.", 0, 10_000_000
    ),
    "compaction.memory_flush.prompt": _key("What the agent is asked then."),
    "compaction.memory_flush.system_prompt": _key("Added to its instructions for that turn."),
    "approvals.*": _key(
        "Whether calls of this tool run (`allow`), wait until you approve them (`ask`) or never run"
        " (`deny`); those not named run."
    ),
    "approvals.*.rule": _key("The same, in the long form."),
    "approvals.*.expires": _key("How long a request waits for your answer: 90m, 7d."),
    "approvals.*.default": _key("What it comes to if you do not answer in time."),
    "routes": _key("Where it may send on its own, beside the routes of its sessions."),
    "routes[].door": _key("The door to send through."),
    "routes[].address": _key("Who is addressed there."),
    "routes[].thread": _key("The thread of the conversation."),
    "routes[].account": _key("The account at the door."),
    **{f"queue.{name}": key for name, key in _QUEUE.items()},
    **{f"proactive.{name}": key for name, key in _PROACTIVE.items()},
    **{f"heartbeat.{name}": key for name, key in _HEARTBEAT.items()},
    **{f"budget.{name}": key for name, key in _BUDGET.items()},
    "quiet_hours": _key(
        "The hours in which only people and what is urgent wake it; default: none."
    ),
    **{f"quiet_hours.{name}": key for name, key in _HOURS.items()},
    "throttle.per_hour": _key(
        "Messages in an hour that it may send somebody who did not ask; more leave as one digest."
        " null: any number.",
        1,
        10_000,
    ),
}

KEYS: dict[str, Key] = {
    "timezone": _key("The user's time zone, an IANA name; default: the machine's."),
    "database": Key(means="`sqlite` in the home folder, or `postgresql://…`.", is_secret=True),
    "database_file": _key("A file with the address of the database."),
    "server.host": _key("The address to listen on; any but loopback needs an operator token."),
    "server.port": _key("The port; 0 takes a free one.", 0, 65_535),
    "server.hosts": _key("More names this server is reached by (`Host`)."),
    "server.origins": _key("More origins whose pages may send requests (`https://…`)."),
    "server.trusted_proxies": _key("Proxies whose `X-Forwarded-For` and `-Proto` are believed."),
    "server.sessions_per_hour": _key(
        "New sessions that one token, unless the operator's, may make in an hour.", 1, 1_000_000
    ),
    "server.megabytes_per_day": _key(
        "What one token, unless the operator's, may send in a day, files and words.", 1, 1_000_000
    ),
    **{f"agents.*.{name}": key for name, key in _AGENT.items()},
    "tools_from": _key("Python files or modules with tools of your own; read again on SIGHUP."),
    "bindings": _key("Which agent answers what arrives at a door; the most specific one wins."),
    "bindings[].match.door": _key("The door."),
    "bindings[].match.account": _key("The account at the door."),
    "bindings[].match.peer": _key("Who speaks."),
    "bindings[].match.group": _key("The group it was said in."),
    "bindings[].match.channel": _key("The channel it was said in."),
    "bindings[].agent": _key("The agent that answers."),
    **{f"bindings[].queue.{name}": key for name, key in _QUEUE.items()},
    **{f"bindings[].proactive.{name}": key for name, key in _PROACTIVE.items()},
    "dm_scope": _key("Which direct conversations of the operator share one session."),
    "identity_links.*": _key("The addresses of one person, under one name."),
    "unified": _key("Whether the operator's web chats share `agent:{id}:unified`."),
    "reset.daily": _key(
        "Whether a conversation ends once a day, and when; `true` means 04:00 in your zone."
    ),
    "reset.idle_minutes": _key(
        "Whether it ends after so many minutes without a person; `true` means 60.", 1, 525_600
    ),
    **{f"queue.{name}": key for name, key in _QUEUE.items()},
    **{f"doors.*.{name}": key for name, key in _QUEUE.items()},
    "lanes.main": _key("Sessions that may run at once.", 1, 10_000),
    "lanes.subagent": _key("Subagents that may run at once.", 1, 10_000),
    "lanes.automation": _key("Automations that may run at once.", 1, 10_000),
    "storm.turns": _key("Turns one source may open in a session within the window.", 1, 100_000),
    "storm.window_s": _key("The window, in seconds.", 1, DAY_S),
    "max_chain_depth": _key("How many stimuli may cause one another in a row.", 1, 1_000),
    "attachments.most_files": _key("How many files may come along with one message.", 0, 100),
    "attachments.most_bytes": _key("How many bytes they may have together.", 0, 10_485_760),
    "inbox.max_bytes": _key("How long one item may be.", 1, 1_000_000),
    "inbox.depth": _key("How many items of all sources may wait.", 1, 10_000_000),
    **{f"inbox.sources.*.{name}": key for name, key in _INBOX_SOURCE.items()},
    "outbound.*.url": _key("Where signed webhooks of this name are sent."),
    "outbound.*.secret": Key(
        means="What they are signed with; several, with spaces between them, all sign.",
        is_secret=True,
    ),
    "outbound.*.secret_file": _key("A file with that secret."),
    "outbound.*.allow_private": _key("Whether its host may have an address that is not public."),
    "outbound.*.has_attachments": _key(
        "Whether the bytes of attachments stand in the webhook, beside where they can be taken."
    ),
    "hooks.*.verify": _key("How the sender of webhooks to `/hooks/{name}` proves who it is."),
    "hooks.*.secret": Key(
        means="What it proves that it has; several, with spaces between them, are all good.",
        is_secret=True,
    ),
    "hooks.*.secret_file": _key("A file with that secret."),
    "hooks.*.header": _key("Of `hmac`: the header with the SHA-256 HMAC of the body."),
    "hooks.*.agent": _key("The agent that they are for."),
    "hooks.*.session": _key(
        "A session of its own, in which each opens a turn; default: the agent's Activity, where"
        " `next` and `later` wait like other items of the inbox."
    ),
    "hooks.*.priority": _key("How urgent they are: `now`, `next` or `later`."),
    "hooks.*.dedup": _key(
        "By what a repeated one is known, a template; default: the id that the sender's scheme has."
    ),
    "hooks.*.text": _key(
        "What the agent reads, a template: `{body}`, `{Header-Name}`, `{payload.name.0}`."
    ),
    "hooks.*.dedup_window_s": _key("For how many seconds a repeated one is known.", 1, 7 * DAY_S),
    "hooks.*.tools": _key("Tools that its turns have beyond the read-only ones; default none."),
    "hooks.*.storm.turns": _key("As `storm.turns`, for this sender.", 1, 100_000),
    "hooks.*.storm.window_s": _key("As `storm.window_s`, for this sender.", 1, DAY_S),
    "mcp_servers.*.url": _key("The address of an MCP server (streamable HTTP)."),
    "mcp_servers.*.command": _key(
        "Or the command that is one (stdio), word by word, or the program alone."
    ),
    "mcp_servers.*.args": _key("Words that follow those of the command."),
    "mcp_servers.*.env.*": Key(
        means="A variable for the command, beside a few harmless ones.", is_secret=True
    ),
    "mcp_servers.*.folder": _key(
        "Where the command runs; default `mcp/{name}` in the home folder."
    ),
    "mcp_servers.*.headers.*": Key(means="A header that is sent to the address.", is_secret=True),
    "mcp_servers.*.bearer": Key(means="A token that is sent to the address.", is_secret=True),
    "mcp_servers.*.bearer_file": _key("A file with that token."),
    "mcp_servers.*.effect": _key("What its tools may do, which decides what a crash leaves."),
    "mcp_servers.*.timeout_s": _key("Seconds that one call may take.", 0.1, 3_600),
    "mcp_servers.*.tools.*.effect": _key("The same for one tool, by the server's name for it."),
    "mcp_servers.*.tools.*.timeout_s": _key("The same for one tool.", 0.1, 3_600),
    "mcp_servers.*.allow_private": _key("Whether its host may have a private address."),
    "mcp_servers.*.trusted": _key(
        "Whether what it says is your word: not fenced, and a turn that reads it keeps its tools."
    ),
    "models.*.vision": _key("Whether the model sees images, where its name does not tell."),
    "models.*.documents": _key("Whether the model and its provider take PDFs."),
    "models.*.context_window": _key(
        "Tokens the model `provider:model` reads at once; needed for servers of your own.",
        1_000,
        100_000_000,
    ),
    "models.*.input": _key("US dollars for a million tokens that it reads.", 0, 100_000),
    "models.*.output": _key("US dollars for a million tokens that it writes.", 0, 100_000),
    "models.*.cache_read": _key(
        "US dollars for a million tokens that come from its cache; default as `input`.", 0, 100_000
    ),
    "models.*.cache_write": _key(
        "US dollars for a million tokens that go into its cache; default as `input`.", 0, 100_000
    ),
    "models.*.max_output": _key(
        "Tokens that it is asked for at most in one answer.", 100, 100_000_000
    ),
    "models.*.cache_edges_ms": _key(
        "A pause between these two lengths, in milliseconds, is moved to the nearer: the cache of"
        " the model's provider is lost by then; default `[270000, 1200000]`."
    ),
    "providers.*.kind": _key(
        "How it is spoken to; needed for a name of your own: `mine:llama3` then asks it."
    ),
    "providers.*.base_url": _key("Where it is, if not where everybody finds it."),
    "providers.*.key": Key(means="Its key; default: a variable of its own.", is_secret=True),
    "providers.*.key_file": _key("A file with that key."),
    "providers.*.headers.*": Key(means="A header that goes along to it.", is_secret=True),
    "providers.*.via": _key(
        "Who speaks to it: we ourselves, or the library that knows every provider."
    ),
    "retention.ledger_days": _key("Days that settled stimuli, turns, deliveries stay.", 1, 36_500),
    "retention.event_days": _key("Days that events stay.", 1, 36_500),
    "retention.events": _key("How many events stay.", 1_000, 1_000_000_000),
    "retention.run_days": _key("Days that records of runs of automations stay.", 1, 36_500),
    "retention.runs_per_job": _key("How many of them one automation has.", 1, 1_000_000),
    "automations.per_session": _key("How many automations one session may have.", 1, 10_000),
    "automations.min_spacing_s": _key(
        "Seconds between two runs of what an agent or an untrusted token schedules.",
        1,
        DAY_S,
    ),
    "automations.from_automations": _key("Whether what an automation does may schedule others."),
    "telemetry.log_level": _key("How much is logged."),
    "drain_s": _key("How many seconds a stop waits for running turns.", 0, DAY_S),
    "watchdog_s": _key("Seconds until a server that hangs ends itself; 0: never.", 0, DAY_S),
}

_NAMED = re.compile(
    r"^(agents|identity_links|doors|outbound|hooks|mcp_servers|providers)\.(?:[^.\[\]]+)"
)
# A tool's name may hold dots itself.
_INNER = re.compile(
    r"^(mcp_servers\.\*\.(?:env|headers|tools)|providers\.\*\.headers)"
    r"\..+?(\.(?:effect|timeout_s))?$"
)

# So may the name of a source.
_LIMITED = re.compile(r"^(agents\.\*\.budget\.(?:origins|sources))\..+(\.[^.]+)$")
_APPROVAL = re.compile(
    r"^(agents\.\*\.approvals)\..+?(\.(?:rule|expires|default))?$"
)  # so may a tool's
# So may that of one who posts to the inbox.
_POSTING = re.compile(r"^inbox\.sources\..+?(\.(?:storm\.)?[a-z_]+)$")
_MODEL = re.compile(r"^models\..+(\.[^.]+)$")  # a model's name may, too


def key_of(path: str) -> Key | None:
    """Return the row of a key as it stands in a file (`agents.main.limits.steps`)."""
    if (model := _MODEL.match(path)) is not None:
        return KEYS.get(f"models.*{model[1]}")
    if (posting := _POSTING.match(path)) is not None:
        return KEYS.get(f"inbox.sources.*{posting[1]}")
    outer = _NAMED.sub(r"\1.*", re.sub(r"\[\d+\]", "[]", path))
    inner = _APPROVAL.sub(r"\1.*\2", _INNER.sub(r"\1.*\2", outer))
    return KEYS.get(_LIMITED.sub(r"\1.*\2", inner))


def refuse_out_of_bounds(record: msgspec.Struct, path: str) -> None:
    """Raise for the first number of a record that its key does not take."""
    for name in record.__struct_fields__:
        at = f"{path}.{name}" if path else name
        value = getattr(record, name)
        if (rule := out_of_bounds(at, value)) is not None:
            raise InvalidInput(at, rule)


def out_of_bounds(path: str, value: object) -> str | None:
    """Return what a key asks of its number, if the value is not one of those."""
    key = key_of(path)
    if key is None or key.low is None or key.high is None or isinstance(value, bool):
        return None
    if not isinstance(value, int | float):
        return None
    if key.low <= value <= key.high:
        return None
    return f"must be from {key.low} to {key.high}, not {value}"
