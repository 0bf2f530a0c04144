"use strict";

// Shows the agents: who works or sleeps and why, when each wakes next, what was skipped and why, and
// what is left of its budget, with the command that raises it. Everything is shown as text.

const REFRESH_MS = 30_000; // what is due comes nearer, also while nothing happens
const PAUSE_MS = 1_000; // between two looks, however much happens
const MOST_LINES = 5;
let lookAgain = null;

function watchAgents() {
  lookAtAgents();
  setInterval(() => document.hidden || lookAtAgents(), REFRESH_MS);
}

// Something has happened: look again, though not at every single event.
function agentsChanged() {
  lookAgain ??= setTimeout(lookAtAgents, PAUSE_MS);
}

async function lookAtAgents() {
  clearTimeout(lookAgain);
  lookAgain = null; // what happens from here on may not be in the answer
  const answer = await fetch("/api/agents").catch(() => null);
  if (!answer || !answer.ok) return;
  const found = (await answer.json()).items;
  document.getElementById("agents").replaceChildren(...found.map(agentCard));
}

function agentCard(agent) {
  const card = document.createElement("li");
  const head = element("h3", agent.id);
  head.append(element("span", agentState(agent), "chip"), element("small", agent.model));
  const wakes = agent.next_wake_at ? "wakes " + fromNow(agent.next_wake_at) : "nothing is due";
  const resume = "halted: `wakeful resume` lets it go on";
  card.append(head, element("p", agent.is_halted ? resume : wakes), ...budgetParts(agent.budget));
  const lines = [...quietLines(agent), ...sleepLines(agent), ...skipLines(agent), ...heldLines(agent)];
  if (lines.length) {
    const list = element("ul", "");
    list.append(...lines.map((line) => element("li", line)));
    card.append(list);
  }
  return card;
}

function agentState(agent) {
  if (agent.is_halted) return "halted";
  const busy = ["running", "waiting"].filter((name) => agent.lanes[name]);
  if (busy.length) return busy.map((name) => agent.lanes[name] + " " + name).join(", ");
  return agent.sleep.length ? "asleep" : "idle";
}

function budgetParts(budget) {
  const { money, turns } = budget;
  const spent = dollars(money.spent) + (money.cap === null ? "" : " of " + dollars(money.cap)) + " spent today";
  const used = turns.cap === null ? "" : `, ${turns.used} of ${turns.cap} turns`;
  const line = element("p", `${spent}${used}, anew ${fromNow(budget.resets_at)}`);
  const shares = [[money.spent, money.cap], [turns.used, turns.cap]].map(([some, all]) => (all ? some / all : 0));
  const meter = document.createElement("progress");
  meter.value = Math.min(1, Math.max(...shares));
  meter.setAttribute("aria-label", "part of today's budget that is used");
  const raise = element("p", budget.parked ? budget.parked + " wait for more: " : "raised by ", "raise");
  raise.append(element("code", `wakeful budget raise ${shares[1] >= 0.8 ? "--turns 50" : "1.00"} --agent ${budget.agent_id}`));
  const isShort = budget.parked || meter.value >= 0.8;
  [line, meter, raise].forEach((part) => part.classList.toggle("short", Boolean(isShort)));
  return [line, meter, raise];
}

function quietLines({ quiet }) {
  return quiet.is_quiet ? [`quiet until ${clockTime(quiet.until)} (${quiet.by}): only people and what is urgent wake it`] : [];
}

function heldLines({ held }) {
  return held.messages ? [`${held.messages} messages held back; a digest leaves ${fromNow(held.leaves_at)}`] : [];
}

function sleepLines(agent) {
  const lines = agent.sleep.slice(0, MOST_LINES).map((one) => {
    const who = one.session_key || agent.id;
    const late = one.refused ? ` (not woken in its time: ${one.refused})` : "";
    return `${who} sleeps until ${clockTime(one.wake_at)}: ${one.reason || "no reason given"}${late}`;
  });
  const more = agent.sleep.length - MOST_LINES;
  return more > 0 ? [...lines, `… and ${more} more sleep`] : lines;
}

function skipLines(agent) {
  const { last_outcome, last_run_at } = agent.heartbeat;
  const beat = last_outcome ? [`heartbeat, ${fromNow(last_run_at)}: ${last_outcome.replace(":", ", ")}`] : [];
  const others = agent.skipped.filter((one) => one.origin !== "heartbeat").slice(0, MOST_LINES);
  return [...beat, ...others.map((one) => `${one.origin}, ${fromNow(one.last_at)}: skipped, ${one.reason} (${one.count} ×)`)];
}

function dollars(amount) {
  return "$" + amount.toFixed(amount && amount < 0.1 ? 4 : 2);
}

function clockTime(instant) {
  const at = new Date(instant);
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? at.toLocaleTimeString() : at.toLocaleString();
}

function fromNow(instant) {
  const seconds = Math.round((new Date(instant) - Date.now()) / 1000);
  const words = duration(Math.abs(seconds));
  return seconds > 0 ? "in " + words : words + " ago";
}

// Rounded: what is due in 29 min 59 s is told as 30 min.
function duration(seconds) {
  if (seconds < 60) return seconds + " s";
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return minutes + " min";
  const hours = Math.round(minutes / 60);
  if (hours < 24) return Math.floor(minutes / 60) + " h" + (minutes % 60 ? " " + minutes % 60 + " min" : "");
  return Math.floor(hours / 24) + " d" + (hours % 24 ? " " + hours % 24 + " h" : "");
}
