"use strict";

// Shows what happened in every session, how much of it nobody has read, what waits in the inbox and
// what agents ask. Everything that comes from outside is shown as text: nothing is read as markup.

const MOST_ROWS = 200; // that the page holds, however many older ones are asked for
const ROWS_AT_ONCE = 30;
const BREATH_MS = 200; // between an event and a look at what it changed
const BEYOND_COUNTING = 1000;
const SLEEP_WORDS = { entered: "fell asleep", ended: "woke up" };
const ORIGINS = ["user", "hub", "a2a", "inbox", "webhook", "approval", "subagent", "callback", "automation", "wake", "tick", "heartbeat", "system"];

// A part of the page: what it asks for and how it shows that; hidden where there is no such thing.
class Part {
  constructor(name, { load, show, kinds }) {
    Object.assign(this, { name, load, show, kinds, timer: null, isLoaded: false });
    this.state = at(name + "-state");
    at(name + "-part").hidden = false;
    this.tell("Loading…");
  }

  // Something happened: look again, though not at every single event.
  changed(wait = BREATH_MS) {
    this.timer ??= setTimeout(() => this.look(), wait);
  }

  async look() {
    clearTimeout(this.timer);
    this.timer = null; // what happens from here on may not be in the answer
    const answer = await fetch(this.load()).catch(() => null);
    if (answer && [403, 404].includes(answer.status)) return void (at(this.name + "-part").hidden = true);
    if (!answer || !answer.ok) return this.fail(answer ? "The server answered " + answer.status + "." : "The server cannot be reached.");
    this.isLoaded = true;
    this.tell("");
    this.show(await answer.json());
  }

  tell(words) {
    this.state.replaceChildren(words);
    this.state.hidden = !words;
  }

  fail(words) {
    this.tell((this.isLoaded ? "This may be old. " : "") + words + " ");
    this.state.append(button("Try again", () => this.look()));
  }
}

function button(words, act, className) {
  const made = element("button", words, className);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

// Does something, and tells what came of it where it was asked for; looks again in any case.
async function act(part, path, body, controls = []) {
  controls.forEach((one) => (one.disabled = true));
  const answer = await post(path, body).catch(() => null);
  const told = answer && !answer.ok ? await answer.json().catch(() => null) : null;
  controls.forEach((one) => (one.disabled = false));
  await part.look();
  if (!answer) part.fail("The server cannot be reached.");
  else if (!answer.ok) part.tell(told ? told.detail || told.title : "The server answered " + answer.status + ".");
  return Boolean(answer && answer.ok);
}

// The feed

let rows = []; // as shown, the newest first
let older = null; // the cursor of what follows the last one
let feed = null;

function feedPath(after) {
  const query = new URLSearchParams({ limit: ROWS_AT_ONCE });
  if (at("origin").value) query.set("origin", at("origin").value);
  if (after) query.set("after", after);
  return "/api/activity?" + query;
}

function showFeed(page) {
  const fresh = new Set(page.items.map((row) => row.id));
  const known = page.next === null ? [] : rows.filter((row) => !fresh.has(row.id) && isOlder(row, page.items.at(-1)));
  older = known.length ? older : page.next;
  rows = [...page.items, ...known].slice(0, MOST_ROWS);
  draw();
  count();
}

function isOlder(row, last) {
  return last && Date.parse(row.at) <= Date.parse(last.at);
}

function draw() {
  at("activity").replaceChildren(...rows.map(feedLine));
  at("older").hidden = older === null || rows.length >= MOST_ROWS;
}

async function showOlder() {
  at("older").disabled = true;
  const answer = await fetch(feedPath(older)).catch(() => null);
  at("older").disabled = false;
  if (!answer || !answer.ok) return feed.fail("Older ones could not be loaded.");
  const page = await answer.json();
  older = page.next;
  rows = [...rows, ...page.items].slice(0, MOST_ROWS);
  draw();
}

function feedLine(row) {
  const line = element("li", "", row.is_unread ? "unread" : "");
  const when = element("time", clockTime(row.at));
  when.dateTime = row.at;
  when.title = new Date(row.at).toString();
  const head = element("p", "", "head");
  const isWrong = ["failed", "timed_out"].includes(row.state);
  head.append(when, element("span", row.origin, "chip"), element("span", SLEEP_WORDS[row.state] || row.state, isWrong ? "state wrong" : "state"));
  if (row.cost !== null) head.append(element("span", dollars(row.cost), "cost"));
  if (row.is_unread) head.append(element("span", "unread", "new"));
  line.append(head);
  if (row.trigger) line.append(element("p", row.trigger, "trigger"));
  const words = row.error || row.reply;
  if (words) line.append(wholeOnFocus(element("p", words, row.error ? "reply wrong" : "reply")));
  const until = row.kind === "sleep" && row.state === "entered" ? "until " + clockTime(row.until) : "";
  const about = [row.agent_id, row.session_key, row.source, until].filter(Boolean).join(" · ");
  line.append(element("p", about, "about"));
  return line;
}

// A long text shows its beginning, and all of it to whoever clicks on it or moves there by keyboard.
function wholeOnFocus(paragraph) {
  paragraph.tabIndex = 0;
  return paragraph;
}

async function count() {
  const answer = await fetch("/api/counts").catch(() => null);
  if (!answer || !answer.ok) return;
  const { unread } = await answer.json();
  at("unread").hidden = at("read").hidden = !unread;
  at("unread").textContent = (unread < BEYOND_COUNTING ? unread : BEYOND_COUNTING + "+") + " unread";
  document.title = unread ? `(${unread}) wakeful` : "wakeful";
  if (!unread && rows.some((row) => row.is_unread)) {
    rows.forEach((row) => (row.is_unread = false));
    draw();
  }
}

function readAll() {
  const until = rows.length ? rows[0].at : new Date().toISOString();
  act(feed, "/api/activity/seen", { until }, [at("read")]);
}

// The inbox

let inbox = null;

function showInbox(page) {
  at("inbox").replaceChildren(...page.items.map(inboxLine));
  at("inbox-more").hidden = page.next === null;
}

function inboxLine(item) {
  const line = element("li", "");
  const head = element("p", "", "head");
  head.append(element("time", clockTime(item.created_at)), element("span", item.priority, "chip"), element("span", item.source, "state"));
  const dismiss = button("Dismiss", () => act(inbox, "/api/inbox/" + encodeURIComponent(item.id) + "/dismiss", {}, [dismiss]), "plain");
  dismiss.setAttribute("aria-label", "Dismiss what " + item.source + " left");
  head.append(dismiss);
  line.append(head, wholeOnFocus(element("p", item.text, "reply")));
  return line;
}

async function addItem(event) {
  event.preventDefault();
  const text = at("item").value.trim();
  if (!text) return;
  const isKept = await act(inbox, "/api/inbox", { text, priority: at("priority").value }, [at("add")]);
  if (isKept) at("item").value = "";
}

// What agents ask

let approvals = null;

function showApprovals(page) {
  // Somebody may be writing an answer: a line that is there already stays as it is.
  const there = new Map([...at("approvals").children].map((line) => [line.dataset.id, line]));
  at("approvals").replaceChildren(...page.items.map((one) => there.get(one.id) || approvalLine(one)));
}

function approvalLine(one) {
  const line = element("li", "");
  line.dataset.id = one.id;
  const head = element("p", "", "head");
  head.append(element("span", "#" + one.number, "state"), element("span", one.kind, "chip"), element("time", "until " + clockTime(one.expires_at)));
  line.append(head);
  if (one.question) line.append(element("p", one.question, "reply"));
  if (one.tool) line.append(element("p", one.tool, "trigger"), element("pre", JSON.stringify(one.arguments, null, 2)));
  line.append(element("p", one.session_key, "about"), answering(one));
  return line;
}

function answering(one) {
  const form = element("form", "", "answer");
  const note = document.createElement("input");
  note.setAttribute("aria-label", (one.kind === "question" ? "Answer to #" : "Note on #") + one.number);
  note.placeholder = one.kind === "question" ? "Your answer" : "A note, if you like";
  note.required = one.kind === "question";
  const decide = (decision) => {
    const words = note.value.trim();
    act(approvals, "/api/approvals/" + encodeURIComponent(one.id), words ? { decision, note: words } : { decision }, [...form.elements]);
  };
  const yes = element("button", one.kind === "question" ? "Answer" : "Approve");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    decide("approve");
  });
  form.append(note, yes, button("Deny", () => decide("deny"), "plain"));
  return form;
}

// Begins to look, and goes on with whatever comes from the stream of events.
function watchParts(source) {
  at("origin").append(...ORIGINS.map((origin) => new Option(origin, origin)));
  at("origin").addEventListener("change", () => {
    rows = [];
    feed.look();
  });
  at("older").addEventListener("click", showOlder);
  at("read").addEventListener("click", readAll);
  at("add-item").addEventListener("submit", addItem);
  feed = new Part("activity", { load: () => feedPath(null), show: showFeed, kinds: ["turn.finished", "notice.added", "sleep.entered", "sleep.woken", "activity.message", "activity.seen", "session.deleted"] });
  inbox = new Part("inbox", { load: () => "/api/inbox?state=held&limit=50", show: showInbox, kinds: ["inbox.item", "stimulus.held", "stimulus.merged", "stimulus.cancelled", "stimulus.expired"] });
  approvals = new Part("approvals", { load: () => "/api/approvals?state=open&limit=50", show: showApprovals, kinds: ["asked", "granted", "denied", "expired", "cancelled"].map((what) => "approval." + what) });
  const automations = new Part("automations", { load: () => "/api/automations?session=" + SESSION + "&limit=50", show: showAutomations, kinds: AUTOMATION_KINDS });
  const parts = [feed, inbox, approvals, automations];
  for (const part of parts) {
    part.look();
    for (const kind of part.kinds) source.addEventListener(kind, () => part.changed());
    source.addEventListener("reset", () => part.changed());
  }
  // What happened while there was no connection comes by itself; what was never loaded does not.
  source.addEventListener("open", () => parts.forEach((part) => part.state.hidden || part.changed()));
}
