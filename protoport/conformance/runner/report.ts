import type { Outcome, Result } from "./run.ts";

/** The formats that a report can have. */
export const reportForms = ["text", "json", "junit", "md"] as const;

/** An item in `reportForms`. */
export type ReportForm = (typeof reportForms)[number];

/** The number of cases by outcome. */
export type Tally = Readonly<Record<Outcome, number>>;

/** Counts results by their outcomes. */
export function countOutcomes(results: readonly Result[]): Tally {
  const count = (outcome: Outcome): number => results.filter((result) => result.outcome === outcome).length;
  return {
    pass: count("pass"),
    alternative: count("alternative"),
    fail: count("fail"),
    known: count("known"),
    fixed: count("fixed"),
    "not run": count("not run"),
  };
}

/**
 * Returns whether a run failed. A run fails if a `must` case fails that is not a known failure, or if a known failure
 * passes.
 */
export function hasFailed(results: readonly Result[], strict: boolean): boolean {
  return results.some(
    ({ case: { level }, outcome }) => outcome === "fixed" || (outcome === "fail" && (strict || level === "must")),
  );
}

/** Writes a report of all results. */
export function writeReport(results: readonly Result[], form: ReportForm): string {
  switch (form) {
    case "text":
      return writeText(results);
    case "json":
      return `${JSON.stringify(results.map(toJson), null, 1)}\n`;
    case "junit":
      return writeJunit(results);
    case "md":
      return writeMarkdown(results);
  }
}

function toJson({ case: { id, group, level, sentence }, outcome, problems, ms }: Result): object {
  return { id, group, level, sentence, outcome, problems, ms: Math.round(ms) };
}

const reported: readonly Outcome[] = ["fail", "fixed"];

function writeText(results: readonly Result[]): string {
  const failures = results.filter(({ outcome }) => reported.includes(outcome)).map(writeFailure);
  return `${failures.join("")}${writeSummary(results)}\n`;
}

/** Returns the text for a failed case: the request, the problems, and the section of the standard. */
function writeFailure({ case: { id, level, title, sentence, request }, outcome, problems }: Result): string {
  const body = request.json ?? request.text ?? request.base64;
  return [
    `${id} (${level}): ${title}`,
    `  ${request.method} ${request.target}${body === undefined ? "" : ` with ${body.slice(0, 200)}`}`,
    ...(outcome === "fixed" ? ["it passed; remove it from the list of known failures"] : problems).map(
      (problem) => `  ${problem}`,
    ),
    `  by ${sentence}`,
    "",
    "",
  ].join("\n");
}

/** Returns a line with the number of cases by outcome. */
export function writeSummary(results: readonly Result[]): string {
  const must = countOutcomes(results.filter(({ case: { level } }) => level === "must"));
  const should = countOutcomes(results.filter(({ case: { level } }) => level === "should"));
  return `${line("must", must)}; ${line("should", should)}`;
}

function line(name: string, { pass, alternative, fail, known, fixed, "not run": skipped }: Tally): string {
  return `${name}: ${pass} passed, ${alternative} by an alternative, ${fail} failed, ${known} known, ${fixed} fixed, ${skipped} not run`;
}

function writeJunit(results: readonly Result[]): string {
  const groups = Object.entries(Object.groupBy(results, ({ case: { group } }) => group));
  const suites = groups.map(([group, members = []]) => {
    const failures = members.filter(({ outcome }) => reported.includes(outcome)).length;
    const skipped = members.filter(({ outcome }) => outcome === "known" || outcome === "not run").length;
    const head = `<testsuite name="${escape(group)}" tests="${members.length}" failures="${failures}" skipped="${skipped}">`;
    return [head, ...members.map(writeTestcase), "</testsuite>"].join("\n");
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join("\n")}\n</testsuites>\n`;
}

function writeTestcase(result: Result): string {
  const { case: each, outcome, problems, ms } = result;
  const head = `<testcase classname="${escape(each.group)}" name="${escape(each.id)}" time="${(ms / 1000).toFixed(3)}"`;
  if (outcome === "known" || outcome === "not run") return `${head}><skipped message="${outcome}"/></testcase>`;
  if (!reported.includes(outcome)) return `${head}/>`;
  const message = problems[0] ?? "passed, but is in the list of known failures";
  return `${head}><failure message="${escape(message)}" type="${each.level}">${escape(writeFailure(result))}</failure></testcase>`;
}

// XML 1.0 §2.2 allows only these three control characters, even if escaped.
function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\u{fffd}");
}

function writeMarkdown(results: readonly Result[]): string {
  const groups = Object.entries(Object.groupBy(results, ({ case: { group } }) => group));
  const row = (name: string, members: readonly Result[]): string => {
    const { pass, alternative, fail, known, fixed, "not run": skipped } = countOutcomes(members);
    return `| ${name} | ${pass} | ${alternative} | ${fail} | ${known} | ${fixed} | ${skipped} |`;
  };
  const failures = results.filter(({ outcome }) => reported.includes(outcome));
  return [
    "| cases | passed | by an alternative | failed | known | fixed | not run |",
    "|---|---|---|---|---|---|---|",
    ...groups.map(([group, members = []]) => row(group, members)),
    row("all", results),
    "",
    ...failures.map(
      ({ case: each, problems }) => `- \`${each.id}\` (${each.level}; ${each.sentence}): ${toTableCell(problems)}`,
    ),
    "",
  ].join("\n");
}

function toTableCell(problems: readonly string[]): string {
  // Problems are formatted as code, so that server output is not interpreted as Markdown or HTML.
  return problems.map((problem) => `\`${problem.replaceAll("`", "'").replaceAll(/[\r\n]+/g, " ")}\``).join("; ");
}
