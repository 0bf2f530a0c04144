"use strict";

// Shows the automations of the conversation on this page: whether each is on, when it is due next,
// and how its last run ended. Everything is shown as text.

const AUTOMATION_KINDS = ["created", "changed", "removed", "disabled", "due", "deferred", "parked", "running", "ok", "error", "skipped", "missed", "cancelled", "expired"].map((what) => "automation." + what);
const OFF_WORDS = { failures: "off after failures" };

function showAutomations(page) {
  at("automations").replaceChildren(...page.items.map(automationLine));
  at("automations-more").hidden = page.next === null;
}

function automationLine(job) {
  const line = element("li", "");
  const head = element("p", "", "head");
  const isWrong = job.last_status === "error" || job.disabled_reason === "failures";
  head.append(element("span", job.name, "state"), element("span", automationState(job), "chip"));
  if (job.next_run_at) head.append(dueTime("next", job.next_run_at));
  line.append(head);
  if (job.description) line.append(element("p", job.description, "trigger"));
  line.append(wholeOnFocus(element("p", job.payload.message || job.payload.text, "reply")));
  const last = job.last_status ? `last ${job.last_status}, ${clockTime(job.last_run_at)}` : "not run yet";
  line.append(element("p", scheduleWords(job.schedule) + " · " + last, isWrong ? "about wrong" : "about"));
  return line;
}

function dueTime(word, instant) {
  const time = element("time", word + " " + clockTime(instant));
  time.dateTime = instant;
  time.title = fromNow(instant);
  return time;
}

function automationState(job) {
  if (job.running_since) return "running";
  return job.enabled ? "on" : OFF_WORDS[job.disabled_reason] || job.disabled_reason;
}

function scheduleWords(schedule) {
  if (schedule.kind === "every") return "every " + spanWords(schedule.every_s);
  if (schedule.kind === "at") return "once";
  return "cron " + schedule.expr + " (" + schedule.tz + ")";
}

// Exact, since it is a setting: nothing is rounded.
function spanWords(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([one]) => seconds % one === 0);
  return seconds / size + " " + unit;
}
