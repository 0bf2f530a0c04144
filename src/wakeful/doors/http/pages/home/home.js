"use strict";

// Signs in with the code of a login link, then shows events and a chat. Everything that comes from
// outside is shown as text: nothing is ever read as markup.

const SESSION = "main";
const MOST_EVENTS = 50;
const WAIT_S = 110;

// An EventSource tells only the kinds that it was asked for.
const KINDS = [
  ...["accepted", "claimed", "pending", "done", "merged", "failed", "cancelled", "suppressed", "expired", "parked", "held"].map((state) => "stimulus." + state),
  ...["started", "resumed", "left", "tool", "fell_back", "finished"].map((state) => "turn." + state),
  ...["queued", "held", "sent", "retry", "acknowledged", "failed", "expired"].map((state) => "delivery." + state),
  ...["created", "reset", "forked", "changed", "labelled", "deleted", "imported", "compacted", "compaction_failed", "compaction_undone"].map((what) => "session." + what),
  ...["warned", "exhausted", "raised", "overrun", "unpriced"].map((what) => "budget." + what),
  ...["asked", "granted", "denied", "expired", "cancelled"].map((what) => "approval." + what),
  ...AUTOMATION_KINDS,
  "timer.fired", "timer.failed", "sleep.entered", "sleep.woken", "heartbeat.skipped", "notice.added",
  "activity.message", "activity.seen", "inbox.item", "storm.started", "loop.cut", "halt.set", "halt.lifted",
];

const at = (id) => document.getElementById(id);
let sessionKey = null; // known from the first answer on
let waiting = null; // the answer that is being written
let sending = 0; // messages of this page that have no answer yet
const turns = new Map(); // turns that ended here; true: this page shows them already

function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function tell(words, className) {
  at("state").textContent = words;
  document.body.className = className || "";
}

function post(path, body) {
  return fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function signIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return true;
  history.replaceState(null, "", location.pathname); // before anything else can read or keep it
  return (await post("/api/login", { code })).ok;
}

async function start() {
  const hasCode = await signIn();
  const session = await fetch("/api/sessions/" + SESSION + "/entries?limit=50");
  if (session.status === 401 || session.status === 429) {
    at("outside").hidden = false;
    tell(hasCode ? "signed out" : "this link was used before, or is too old");
    return;
  }
  at("inside").hidden = at("nav").hidden = false;
  if (session.ok) {
    (await session.json()).items.forEach(recall);
    seen();
  }
  follow();
  watchAgents();
  at("text").focus();
}

// What is shown here was read, as far as anybody can tell.
function seen() {
  post("/api/sessions/" + SESSION + "/seen", {}).catch(() => null);
}

function recall(entry) {
  const body = entry.body;
  if (body.type === "user") say(body.text, "mine");
  if (body.type === "note" && body.topic === "command") {
    const [command, ...answer] = body.text.split("\n");
    say(command, "mine");
    say(answer.join("\n"));
  }
  const waits = body.type === "tool" && /^waiting for approval #(\d+): a person/.exec(body.message.text);
  if (waits) say("Waiting for approval #" + waits[1] + ": " + body.message.name + ` (/approve ${waits[1]} or /deny ${waits[1]}).`);
  if (body.type !== "assistant") return;
  const text = body.message.content.map(saidBy).filter(Boolean).join("");
  if (text) paint(say(""), text);
}

// A question is asked by a call, and people hear it like any other words.
function saidBy(block) {
  if (block.type === "text") return block.text;
  const question = block.type === "tool_call" && block.name === "ask_human" && block.arguments.question;
  return typeof question === "string" ? question : "";
}

// Shows fences, code, bold words and headings of Markdown, by making elements that hold plain text.
function paint(line, text) {
  line.replaceChildren();
  text.split(/^```[^\n`]*\n([\s\S]*?)^```[ \t]*(?:\n|$)/m).forEach((part, number) => {
    if (number % 2) line.append(element("pre", part.replace(/\n$/, "")));
    else part.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*|^#{1,6} [^\n]+$)/m).forEach((words) => line.append(styled(words)));
  });
  line.scrollIntoView({ block: "end" });
}

function styled(words) {
  if (/^`[^`\n]+`$/.test(words)) return element("code", words.slice(1, -1));
  if (/^\*\*[^*\n]+\*\*$/.test(words)) return element("strong", words.slice(2, -2));
  if (/^#{1,6} [^\n]+$/.test(words)) return element("strong", words.replace(/^#+ /, ""));
  return document.createTextNode(words);
}

function say(text, className) {
  const line = element("li", text, className);
  at("chat").append(line);
  line.scrollIntoView({ block: "end" });
  return line;
}

function follow() {
  const source = new EventSource("/api/events");
  source.onopen = () => tell("signed in, and awake", "awake");
  source.onerror = () => tell("the connection is lost; trying again…", "lost");
  for (const kind of KINDS) source.addEventListener(kind, (frame) => show(kind, JSON.parse(frame.data)));
  source.addEventListener("turn.finished", (frame) => ended(JSON.parse(frame.data)));
  source.addEventListener("turn.delta", (frame) => write(JSON.parse(frame.data)));
  for (const kind of ["stimulus.accepted", "stimulus.parked", "stimulus.held"])
    source.addEventListener(kind, (frame) => putOff(kind, JSON.parse(frame.data)));
  watchParts(source);
}

function show(kind, data) {
  agentsChanged();
  const line = document.createElement("li");
  const when = data.at ? new Date(data.at).toLocaleTimeString() : "";
  const about = [data.session_key, data.state, data.name, data.reason].filter(Boolean).join(" · ");
  line.append(element("time", when), element("span", kind, "kind"), element("span", about, "about"));
  at("events").prepend(line);
  while (at("events").children.length > MOST_EVENTS) at("events").lastChild.remove();
}

function isHere(event) {
  return sessionKey ? event.session_key === sessionKey : /^agent:[^:]+:main$/.test(event.session_key);
}

function ended(event) {
  if (!isHere(event) || turns.has(event.turn_id)) return;
  turns.set(event.turn_id, false);
  catchUp();
}

// What was said elsewhere, in a terminal or by another program, belongs to this conversation, too.
async function catchUp() {
  const missing = new Set([...turns.keys()].filter((id) => !turns.get(id)));
  if (sending || !missing.size) return; // a turn that ended may be the one that is waited for
  missing.forEach((id) => turns.set(id, true));
  const answer = await fetch("/api/sessions/" + SESSION + "/entries?limit=50").catch(() => null);
  if (answer && answer.ok) (await answer.json()).items.filter((entry) => missing.has(entry.turn_id)).forEach(recall);
  seen();
}

function write(delta) {
  if (!waiting || !isHere(delta)) return;
  if (waiting.className === "waiting") {
    waiting.className = "";
    waiting.textContent = "";
  }
  if (delta.restarted) waiting.textContent = ""; // another model begins anew
  waiting.textContent += delta.text;
  waiting.scrollIntoView({ block: "end" });
}

// Nobody works on it for now: it was put off when it came, or when its turn would have begun.
function putOff(kind, event) {
  const state = kind === "stimulus.accepted" ? event.outcome : kind.replace("stimulus.", "");
  if (!waiting || waiting.className !== "waiting" || !isHere(event) || !["parked", "held"].includes(state)) return;
  waiting.dataset.kept = `It is kept (${event.reason || state}), and answered when that is over.`;
  waiting.textContent = waiting.dataset.kept;
}

async function send(event) {
  event.preventDefault();
  const text = at("text").value.trim();
  if (!text) return;
  at("text").value = "";
  say(text, "mine");
  const line = (waiting = say("…", "waiting"));
  sending += 1;
  await answered(line, text);
  sending -= 1;
  catchUp();
}

async function answered(line, text) {
  const answer = await post("/api/sessions/" + SESSION + "/messages?wait=" + WAIT_S, { text }).catch(() => null);
  const told = answer && (await answer.json());
  if (waiting === line) waiting = null;
  if (!answer || !answer.ok) {
    line.className = "failed";
    line.textContent = told ? told.detail || told.title : "The server cannot be reached.";
    return;
  }
  sessionKey = told.session_key;
  if (told.turn) {
    turns.set(told.turn.id, true);
    seen();
  }
  const isBegun = line.className === ""; // words of it are shown already, and stay
  const rest = isBegun ? line.textContent + "\n(it ended here)" : "(no answer)";
  const words = told.turn ? told.turn.reply || rest : told.reply;
  line.className = words ? "" : "waiting";
  const used = told.turn && told.turn.usage_line ? "\n" + told.turn.usage_line : "";
  paint(line, words ? words + used : line.dataset.kept || "It is still at work; look at the events.");
}

function press(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at("form").requestSubmit();
}

at("text").addEventListener("keydown", press);
at("form").addEventListener("submit", send);
// A link that is opened where this page is open already does not load it again.
addEventListener("hashchange", () => location.hash && location.reload());
start();
