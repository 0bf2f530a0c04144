"""A settings file works, or every problem in it is told with its place."""

import textwrap
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.intake.bindings import DmScope
from wakeful.settings.file import LogLevel, SettingsFile
from wakeful.settings.load import Loaded, load, load_text, reload
from wakeful.settings.places import file_of, home_of
from wakeful.settings.problems import BadSettings
from wakeful.vocabulary.agent import ThrottleRules
from wakeful.vocabulary.approving import permission_of
from wakeful.vocabulary.budget import BudgetRules, DayLimits
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.queueing import Mode
from wakeful.vocabulary.route import Route

FILE = Path("/etc/wakeful.yaml")
ENVIRON = {"WAKEFUL_HOME": "/srv/wakeful"}
TOP = (
    "timezone, database, database_file, server, agents, tools_from, bindings, dm_scope, "
    "identity_links, unified, reset, queue, doors, lanes, storm, max_chain_depth, attachments, "
    "inbox, outbound, hooks, mcp_servers, models, providers, retention, automations, "
    "telemetry, drain_s"
)


def loaded(text: str, **environ: str) -> Loaded:
    return load_text(textwrap.dedent(text), FILE, {**ENVIRON, **environ})


def problems(text: str, **environ: str) -> list[str]:
    with pytest.raises(BadSettings) as caught:
        loaded(text, **environ)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "agents:\nserver:\n", "null"])
def test_an_empty_file_works(text: str):
    everything = loaded(text)

    assert everything.written == SettingsFile()
    assert [agent.id for agent in everything.agents] == ["main"]
    assert everything.server.host == "127.0.0.1"
    assert everything.server.port == 8484


def test_every_key_arrives_where_it_belongs():
    everything = loaded(
        """
        timezone: Europe/Berlin
        server: {host: 10.0.0.1, port: 9000, hosts: [agents.example]}
        agents:
          scout: {instructions: Be brief., workspace: /srv/scout, tools: [current_time, shell]}
        bindings:
          - match: {door: mail, peer: ann}
            agent: scout
            queue: {mode: collect}
        dm_scope: per-peer
        identity_links: {ann: ["mail:ann", "chat:anna"]}
        queue: {mode: followup, cap: 5}
        lanes: {main: 3}
        outbound: {crm: {url: "https://crm.example/in", secret: MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}}
        telemetry: {log_level: debug}
        drain_s: 5
        """
    )

    assert everything.settings.timezone == "Europe/Berlin"
    assert everything.settings.lanes.main == 3
    assert everything.settings.queue.mode is Mode.FOLLOWUP
    assert everything.settings.dm_scope is DmScope.PER_PEER
    assert everything.settings.bindings[0].agent == "scout"
    assert everything.settings.drain_s == 5.0
    assert everything.server.hosts == ("agents.example",)
    assert everything.outbound["crm"].secret == "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert everything.telemetry.log_level is LogLevel.DEBUG
    main, scout = everything.agents
    assert main.workspace == Path("/srv/wakeful/workspaces/main")
    assert scout.workspace == Path("/srv/scout")
    assert [tool.name for tool in scout.tools] == ["current_time", "shell"]
    assert not scout.has_default_tools


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("modle: demo", f":1: modle: unknown key; did you mean 'models'? valid: {TOP}"),
        (
            "agents:\n  main:\n    modle: demo",
            ":3: agents.main.modle: unknown key; did you mean 'model'? valid: model, "
            "fallback_models, thinking, instructions, instructions_file, workspace, "
            "shared_files, tools, mcp, queue, limits, compaction, proactive, heartbeat, budget, "
            "quiet_hours, throttle, routes",
        ),
        (
            "hoks: {}",
            f":1: hoks: unknown key; did you mean 'hooks'? valid: {TOP}",
        ),
        ("server: {port: x}", ":1: server.port: must be a whole number, not text 'x'"),
        ("server: {port: 1.5}", ":1: server.port: must be a whole number, not a number '1.5'"),
        ("server: {port: 70000}", ":1: server.port: must be from 0 to 65535, not 70000"),
        ("server: [1]", ":1: server: must be keys and values, not a list"),
        ("server: {hosts: a}", ":1: server.hosts: must be a list, not text"),
        ("server: {hosts: [{}]}", ":1: server.hosts[0]: must be text, not keys and values"),
        ("server: {hosts: ['a:1']}", ":1: server.hosts[0]: must be a host name without a port"),
        ("server: {host: 'a b'}", ":1: server.host: must be an address or a host name"),
        (
            "server:\n  origins:\n    - https://a.example/x",
            ":3: server.origins[0]: must be an origin such as https://example.com",
        ),
        (
            "server: {trusted_proxies: ['*']}",
            ":1: server.trusted_proxies[0]: must be an address or a network such as 10.0.0.0/8, "
            "not '*'",
        ),
        (
            "queue: {mode: fast}",
            ":1: queue.mode: must be one of steer, followup, collect, steer-backlog, queue, "
            "interrupt, not text 'fast'",
        ),
        ("queue: {cap: 0}", ":1: queue.cap: must be from 1 to 10000, not 0"),
        (
            "automations: {per_session: 0}",
            ":1: automations.per_session: must be from 1 to 10000, not",
        ),
        (
            "automations: {min_spacing_s: 0}",
            ":1: automations.min_spacing_s: must be from 1 to 86400",
        ),
        (
            "automations: {from_automations: often}",
            ":1: automations.from_automations: must be true or",
        ),
        ("automations: {per_day: 3}", ":1: automations.per_day: unknown key; valid: per_session"),
        ("drain_s: yes", ":1: drain_s: must be a number, not text 'yes'"),
        ("timezone: Mars/Olympus", ":1: timezone: must be an IANA name such as Europe/Berlin, not"),
        ("timezone: 5", ":1: timezone: must be text, not a whole number '5'"),
        ("queue:\n  cap: 3\nqueue:\n  cap: 4", ":3: queue: is given twice (first in line 1)"),
        ("agents: {Main: {}}", ":1: agents.Main: must be 1 to 64 of a-z"),
        ("agents: {main: {model: gpt}}", ":1: agents.main.model: must be 'demo'"),
        (
            "agents: {main: {tools: [hammer]}}",
            ":1: agents.main.tools[0]: must be one of current_time, ",
        ),
        (
            "agents: {main: {approvals: {shell: perhaps}}}",
            ":1: agents.main.approvals.shell: must be one of allow, ask, deny or keys and values, "
            "not text 'perhaps'",
        ),
        (
            "agents: {main: {approvals: {shell: {rule: ask, expires: 5s}}}}",
            ":1: agents.main.approvals.shell.expires: must be from 1m to 366d, not '5s'",
        ),
        (
            "agents: {main: {approvals: {shell: {expires: 5d}}}}",
            ":1: agents.main.approvals.shell: needs the key 'rule'",
        ),
        (
            "agents: {main: {heartbeat: {every: 5}}}",
            ":1: agents.main.heartbeat.every: must have a unit, such as 5m or 5h; 0 turns it off",
        ),
        (
            "agents: {main: {heartbeat: {every: 30s}}}",
            ":1: agents.main.heartbeat.every: must be from 1m to 366d, or 0",
        ),
        (
            "agents: {main: {heartbeat: {every: soon}}}",
            ":1: agents.main.heartbeat.every: must be a number with a unit, such as 90s, 30m",
        ),
        (
            'agents: {main: {heartbeat: {active_hours: {start: "25:00", end: "08:00"}}}}',
            ":1: agents.main.heartbeat.active_hours.start: must be a time from 00:00 to 23:59",
        ),
        (
            "agents: {main: {heartbeat: {active_hours: {start: 8, end: 22:00}}}}",
            ":1: agents.main.heartbeat.active_hours.start: must be a time such as 07:00, not",
        ),
        (
            "agents: {main: {quiet_hours: {start: 22:00, end: 7}}}",
            ":1: agents.main.quiet_hours.end: must be a time such as 07:00, not a whole number '7'",
        ),
        (
            "agents: {main: {quiet_hours: {start: 22:00, end: 7am}}}",
            ":1: agents.main.quiet_hours.end: must be a time from 00:00 to 24:00, not '7am'",
        ),
        (
            'agents: {main: {heartbeat: {active_hours: {start: "08:00"}}}}',
            ":1: agents.main.heartbeat.active_hours",
        ),
        (
            "agents:\n  main:\n    heartbeat:\n      active_hours:\n        start: '08:00'\n"
            "        end: '24:00'\n        timezone: Mars/Base",
            ":7: agents.main.heartbeat.active_hours.timezone: must be user, local or an IANA name",
        ),
        (
            "agents: {main: {heartbeat: {target: somewhere}}}",
            ":1: agents.main.heartbeat.target: must be last, none or a route such as",
        ),
        (
            "agents: {main: {heartbeat: {session: 'agent:other:main'}}}",
            ":1: agents.main.heartbeat.session: must be a session of the agent 'main'",
        ),
        (
            "agents: {main: {heartbeat: {model: gpt}}}",
            ":1: agents.main.heartbeat.model: must be 'demo'",
        ),
        ("agents: {main: {proactive: {jitter_pct: 101}}}", ":1: agents.main.proactive.jitter_pct:"),
        (
            "agents: {main: {proactive: {tick_interval_secs: 10}}}",
            ":1: agents.main.proactive.tick_interval_secs: must be at least 60, not 10; "
            "'allow_short_intervals: true' permits it",
        ),
        (
            "bindings:\n- match: {door: hub}\n  proactive: {enabled: true, tick_interval_secs: 10}",
            ":3: bindings[0].proactive.tick_interval_secs: must be at least 60, not 10; "
            "'allow_short_intervals: true' permits it",
        ),
        (
            "agents: {main: {proactive: {tick_interval_secs: 600, max_idle_secs: 300}}}",
            ":1: agents.main.proactive.tick_interval_secs: must not be above max_idle_secs (300)",
        ),
        (
            "agents: {main: {quiet_hours: {start: '22:00'}}}",
            ":1: agents.main.quiet_hours: needs the key 'end'",
        ),
        (
            "agents: {main: {quiet_hours: {start: '22:00', end: '7:00', timezone: Mars/Base}}}",
            ":1: agents.main.quiet_hours.timezone: must be user, local or an IANA name",
        ),
        (
            "agents:\n  main:\n    throttle: {per_hour: 0}",
            ":3: agents.main.throttle.per_hour: must be from 1 to 10000, not 0",
        ),
        (
            "agents: {main: {throttle: {per_hour: lots}}}",
            ":1: agents.main.throttle.per_hour: must be",
        ),
        (
            "agents: {main: {throttle: {hourly: 6}}}",
            ":1: agents.main.throttle.hourly: unknown key; valid: per_hour",
        ),
        ("agents: {main: {limits: {steps: 0}}}", ":1: agents.main.limits.steps: must be from 1"),
        (
            "agents: {main: {compaction: {memory_flush: {prompt: ' '}}}}",
            ":1: agents.main.compaction.memory_flush.prompt: must not be blank",
        ),
        (
            "agents: {main: {instructions: a, instructions_file: b}}",
            ":1: agents.main.instructions_file: must not be given together with",
        ),
        ("database: mysql://x", ":1: database: must be 'sqlite' or postgresql://…"),
        (
            "bindings: [{match: {door: mail}, agent: bob}]",
            ":1: bindings[0].agent: must be one of main, not 'bob'",
        ),
        ("bindings: [{agent: main}]", ":1: bindings[0]: needs the key 'match'"),
        ("bindings: [{match: {door: ''}}]", ":1: bindings[0].match.door: must not be empty"),
        (
            "bindings: [{match: {door: a}}, {match: {door: a}}]",
            ":1: bindings: two bindings match the same contacts",
        ),
        ("outbound: {crm: {url: http://x}}", ":1: outbound.crm: needs the key 'secret' or"),
        (
            "outbound: {crm: {url: ftp://x, secret: x}}",
            ":1: outbound.crm.url: must be http://… or https://…",
        ),
        ("outbound: {crm: {secret: x}}", ":1: outbound.crm: needs the key 'url'"),
        ("- a list", ":1: must be keys and values, not a list"),
        ("just words", ":1: must be keys and values, not text"),
        ("a: [", ":1: not YAML: while parsing a flow node"),
        ("a: b: c", ":1: not YAML: mapping values are not allowed here"),
        ("a: 1\n---\nb: 2", ":2: not YAML: expected a single document in the stream"),
        ("agents: &a {}\ndoors: *a", ":2: not YAML: aliases are not supported: write it out"),
        ("timezone: !!python/name:os.system x", ":1: timezone: must be written without a YAML tag"),
        ("{a: b}: c", ":1: must have plain words as keys"),
        ("timezone: ${ZONE}", ":1: timezone: ${ZONE} is not set in the environment"),
        ("x: \x07", ":1: not YAML: special characters are not allowed"),
        ("\n\nx: \ue000", ":3: holds a character of a private area"),
        ("[" * 5000, ":1: not YAML: nested too deeply"),
    ],
)
def test_a_bad_file_is_told_with_file_line_key_and_rule(text: str, told: str):
    first = problems(text)[0]

    assert first.startswith(f"{FILE}{told}"), first


@pytest.mark.parametrize("seven", ["7:00", "07:00", "'7:00'", '"07:00"'])
def test_hours_are_read_as_people_write_them(seven: str):
    text = f"""
    timezone: UTC
    agents:
      main:
        quiet_hours: {{start: 22:00, end: {seven}}}
        heartbeat: {{active_hours: {{start: {seven}, end: 22:00}}}}
    """

    config = loaded(text).agents[0].config

    assert config.quiet_hours is not None
    assert config.heartbeat.active_hours is not None
    seven_ms, zone = 7 * 3_600_000, ZoneInfo("UTC")
    assert config.quiet_hours.span(0, zone).end == seven_ms
    assert config.heartbeat.active_hours.span(0, zone).start == seven_ms


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("last", "last"),
        ("none", "none"),
        ("{door: mail, address: ann}", Route(door="mail", address="ann")),
    ],
)
def test_each_target_of_a_heartbeat_is_taken(written: str, target: object):
    (main,) = loaded(f"agents: {{main: {{heartbeat: {{target: {written}}}}}}}").agents

    assert main.config.heartbeat.target == target


@pytest.mark.parametrize(("written", "limit"), [("null", None), ("~", None), ("", 1.0), ("3", 3.0)])
def test_null_lifts_a_limit_and_a_bare_key_does_not(written: str, limit: float | None):
    text = f"agents:\n  main:\n    budget:\n      money_per_day: {written}\n"

    assert loaded(text).agents[0].config.budget.money_per_day == limit


def test_every_setting_about_waking_arrives_where_it_belongs():
    everything = loaded(
        """
        timezone: Europe/Berlin
        agents:
          main:
            proactive: {enabled: true, tick_interval_secs: 900, jitter_pct: 5, max_idle_secs: 7200,
              initial_greeting: false, cache_aware_schedule: false, allow_short_intervals: true,
              daily_turn_budget: 7, light_context: true}
            heartbeat: {every: 2h, prompt: Look., target: none, session: watch,
              model: "ollama:small", ack_max_chars: 10, include_reasoning: true,
              light_context: false,
              active_hours: {start: "08:00", end: "24:00", timezone: America/New_York}}
            budget: {money_per_day: 2.5, turns_per_day: null, money_per_chain: 0.5,
              reserve_for_people: 0.3, origins: {tick: {money_per_day: 0.1, turns_per_day: 9}},
              sources: {"cron:daily": {turns_per_day: 5}}}
            quiet_hours: {start: "22:00", end: "07:00", timezone: local}
            throttle: {per_hour: null}
        bindings:
          - match: {door: hub}
            proactive: {enabled: true}
        """
    )

    (main,) = everything.agents
    assert main.config.proactive == ProactiveRules(
        enabled=True,
        tick_interval_secs=900,
        jitter_pct=5,
        max_idle_secs=7200,
        initial_greeting=False,
        cache_aware_schedule=False,
        allow_short_intervals=True,
        daily_turn_budget=7,
        light_context=True,
    )
    assert main.config.heartbeat == HeartbeatRules(
        every="2h",
        prompt="Look.",
        target="none",
        session="watch",
        model="ollama:small",
        ack_max_chars=10,
        include_reasoning=True,
        light_context=False,
        active_hours=DailyHours(start="08:00", end="24:00", timezone="America/New_York"),
    )
    assert main.config.budget == BudgetRules(
        money_per_day=2.5,
        turns_per_day=None,
        money_per_chain=0.5,
        reserve_for_people=0.3,
        origins={"tick": DayLimits(money_per_day=0.1, turns_per_day=9)},
        sources={"cron:daily": DayLimits(turns_per_day=5)},
    )
    assert main.config.quiet_hours == DailyHours(start="22:00", end="07:00", timezone="local")
    assert main.config.throttle == ThrottleRules(per_hour=None)
    # The block of a binding counts whole: what it leaves out is the default, not its agent's.
    assert everything.settings.bindings[0].proactive == ProactiveRules(enabled=True)


def test_all_problems_are_told_at_once_in_the_order_of_the_file():
    told = problems("queue: {cap: 0}\nserver:\n  port: x\nlanes: {mian: 3}\n")

    assert [line.split(": ")[1] for line in told] == ["queue.cap", "server.port", "lanes.mian"]


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("server: {host: ${NAME}}", "10.0.0.7"),
        ("server: {host: '${NAME}'}", "10.0.0.7"),
        ("server:\n  host: ${OTHER:-10.0.0.8}", "10.0.0.8"),
        ("server:\n  host: agents.${DOMAIN}  # ${UNSET}", "agents.example"),
    ],
)
def test_variables_are_filled_in(text: str, host: str):
    assert loaded(text, NAME="10.0.0.7", DOMAIN="example").server.host == host


def test_a_variable_becomes_a_number_only_where_a_number_is_wanted():
    text = "server: {port: ${PORT}}\noutbound: {crm: {url: 'http://x', secret: ${SECRET}}}"

    everything = loaded(text, PORT="9000", SECRET="12345678" * 4)

    assert everything.server.port == 9000
    assert everything.outbound["crm"].secret == "12345678" * 4


def test_what_a_variable_holds_is_text_and_never_yaml():
    text = "agents: {main: {instructions: ${TEXT}}}"

    everything = loaded(text, TEXT="a, b}\nserver: {port: 1}")

    assert everything.agents[0].instructions == "a, b}\nserver: {port: 1}"
    assert everything.server.port == 8484


@pytest.mark.parametrize(
    "text",
    [
        "database: mysql://ann:canary@host",
        "database: [canary]",
        "outbound: {crm: {url: 'http://x', secret: [canary]}}",
        "server: {port: ${SECRET}}",
        "queue: {mode: ${SECRET}}",
    ],
)
def test_no_message_shows_a_secret(text: str):
    assert "canary" not in "\n".join(problems(text, SECRET="canary"))


def test_secrets_come_from_files_beside_the_settings(tmp_path: Path):
    (tmp_path / "url").write_text("postgresql://db/wakeful\n")
    file = tmp_path / "wakeful.yaml"
    file.write_text("database_file: url\n")

    assert load(file, ENVIRON).settings.database == "postgresql://db/wakeful"


def test_a_secret_file_that_cannot_be_read_is_named(tmp_path: Path):
    file = tmp_path / "wakeful.yaml"
    file.write_text("database_file: nowhere\n")

    with pytest.raises(BadSettings, match=r":1: database_file: .*/nowhere cannot be read: No such"):
        load(file, ENVIRON)


def test_the_environment_is_stronger_than_the_file():
    text = "server: {host: 10.0.0.1, port: 1}\ndatabase: sqlite"

    everything = loaded(
        text,
        WAKEFUL_HOST="127.0.0.1",
        WAKEFUL_PORT="2",
        WAKEFUL_DATABASE="postgresql://db/x",
        WAKEFUL_TOKEN="t",
    )

    assert (everything.server.host, everything.server.port) == ("127.0.0.1", 2)
    assert everything.settings.database == "postgresql://db/x"
    assert everything.token == "t"


@pytest.mark.parametrize("port", ["x", "-1", "70000", "\N{ARABIC-INDIC DIGIT ONE}", "9" * 400])
def test_a_bad_variable_is_named(port: str):
    assert problems("", WAKEFUL_PORT=port)[0].startswith("WAKEFUL_PORT: must be ")


def test_a_bad_host_of_the_environment_is_named():
    assert problems("", WAKEFUL_HOST="a b") == ["WAKEFUL_HOST: must be an address or a host name"]


def test_the_file_at_home_is_found_and_need_not_exist(tmp_path: Path):
    environ = {"WAKEFUL_HOME": str(tmp_path)}

    assert load(None, environ).file is None

    (tmp_path / "wakeful.yaml").write_text("drain_s: 1\n")
    assert load(None, environ).settings.drain_s == 1.0
    assert file_of(environ) == tmp_path / "wakeful.yaml"
    assert home_of({}).name == ".wakeful"


def test_a_file_that_was_named_must_exist(tmp_path: Path):
    named = {"WAKEFUL_CONFIG": str(tmp_path / "other.yaml")}

    with pytest.raises(BadSettings, match="there is no such file"):
        load(None, named)
    with pytest.raises(BadSettings, match="cannot be read: Is a directory"):
        load(tmp_path, ENVIRON)


def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path: Path):
    file = tmp_path / "wakeful.yaml"

    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(BadSettings, match=r":2: is not UTF-8"):
        load(file, ENVIRON)
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(BadSettings, match="is larger than"):
        load(file, ENVIRON)


def test_a_reload_takes_all_of_a_good_file_and_names_what_changed(tmp_path: Path):
    file = tmp_path / "wakeful.yaml"
    file.write_text("drain_s: 1\n")
    old = load(file, ENVIRON)

    file.write_text("drain_s: 2\nqueue: {cap: 3}\n")
    new, outcome = reload(old, ENVIRON)

    assert new.settings.drain_s == 2.0
    assert outcome.changed == ("queue", "drain_s")
    assert outcome.problems == ()


def test_a_reload_keeps_the_old_settings_when_the_file_is_broken(tmp_path: Path):
    file = tmp_path / "wakeful.yaml"
    file.write_text("drain_s: 1\n")
    old = load(file, ENVIRON)

    file.write_text("drain_s: 2\nqueue: {cap: none}\n")
    new, outcome = reload(old, ENVIRON)

    assert new is old
    assert [problem.key for problem in outcome.problems] == ["queue.cap"]


WORDS = ["${A}", "${A:-b}", "demo", "1", "1.5", "true", "null", "port", "model", "match", "main"]
SIGNS = ["\n  ", ": ", "- ", "\x00", *"[]{}:,-#&*!|>'\"%@`$~ \n\t"]
PIECES = st.sampled_from([*SettingsFile.__struct_fields__, *WORDS, *SIGNS])


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)))
def test_whatever_the_file_says_it_works_or_is_refused_clearly(text: str):
    try:
        everything = load_text(text, FILE, {**ENVIRON, "A": "1"})
    except BadSettings as bad:
        assert all(str(problem).startswith(str(FILE)) for problem in bad.problems)
        assert all(problem.line is not None for problem in bad.problems)
    else:
        assert everything.agents[0].id == "main"


@pytest.mark.parametrize("folder", [".", "workspaces/..", "..", "/", "link", "link/.."])
def test_a_workspace_that_holds_the_home_folder_is_refused(tmp_path: Path, folder: str):
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(tmp_path)
    found = problems(f"agents: {{main: {{workspace: {folder}}}}}", WAKEFUL_HOME=str(home))

    assert len(found) == 1
    assert "agents.main.workspace: must not hold the home folder" in found[0]


def test_a_workspace_inside_or_beside_the_home_folder_is_fine(tmp_path: Path):
    home = str(tmp_path / "home")
    for folder in ("w", "../w", "../home2", "/srv/w"):
        assert loaded(f"agents: {{main: {{workspace: {folder}}}}}", WAKEFUL_HOME=home).agents


def test_the_home_of_somebody_who_does_not_exist_is_a_file_that_is_missing():
    with pytest.raises(BadSettings, match="database_file"):
        load_text("database_file: ~nobody-here/dsn", FILE, ENVIRON)


def test_rules_for_tools_have_a_short_and_a_long_form():
    (agent, *_) = loaded(
        "agents: {main: {approvals: {shell: ask, a.b: {rule: ask, expires: 2d, default: allow}}}}"
    ).agents

    assert agent.config.approvals["shell"] == "ask"
    assert permission_of(agent.config.approvals, "a.b").expires_ms == 2 * 86_400_000
