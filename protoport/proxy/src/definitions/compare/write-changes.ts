import type { Change } from "./change.ts";

/** Formats changes for people. */
export function writeChanges(changes: PartitionedChanges): string {
  const blocks = changes.open.map((change) =>
    [
      `${locationOf(change)}: ${change.severity}: ${change.rule} ${change.subject}`,
      `  changed: ${change.change}`,
      `  before:  ${change.before}`,
      `  now:     ${change.now}`,
    ].join("\n"),
  );
  return [summaryOf(changes), ...blocks].join("\n\n");
}

/** Formats changes, and the reasons for which the gateway would not start, as GitHub Actions annotations. */
export function writeAnnotations(changes: PartitionedChanges, problems: readonly string[]): string {
  const annotations = changes.open.map(({ severity, file, line, rule, subject, change, before, now }) => {
    const place = [`file=${escapeProperty(file)}`, ...(line === undefined ? [] : [`line=${line}`])].join(",");
    const message = `${subject}: ${change}\nBefore: ${before}\nNow: ${now}`;
    return `::${severity} ${place},title=${rule}::${escapeMessage(message)}`;
  });
  const failures = problems.map((problem) => `::error title=The gateway would not start::${escapeMessage(problem)}`);
  return [...failures, ...annotations, summaryOf(changes)].join("\n");
}

function summaryOf({ open, accepted }: PartitionedChanges): string {
  const errors = open.filter(({ severity }) => severity === "error").length;
  const count = `${errors} ${errors === 1 ? "change breaks" : "changes break"} clients, ${open.length - errors} may`;
  return `${count}; ${accepted.length} accepted.`;
}

function locationOf({ file, line }: Change): string {
  return line === undefined ? file : `${file}:${line}`;
}

function escapeMessage(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function escapeProperty(text: string): string {
  return escapeMessage(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}

/** Changes, separated into open and accepted changes. */
export interface PartitionedChanges {
  readonly open: readonly Change[];
  readonly accepted: readonly Change[];
  /** The lines in the file that accept no change. */
  readonly unused: readonly string[];
}

/** Separates the changes that a file accepts. `text` has one change per line, `RULE SUBJECT`, and `#` comments. */
export function partitionAccepted(changes: readonly Change[], text: string): PartitionedChanges {
  const lines = text.split("\n").map((line) => line.replace(/(^|\s)#.*$/, "").trim());
  const names = new Set(lines.filter((line) => line !== ""));
  const found = new Set(changes.map(nameOfChange));
  return {
    open: changes.filter((change) => !names.has(nameOfChange(change))),
    accepted: changes.filter((change) => names.has(nameOfChange(change))),
    unused: [...names].filter((name) => !found.has(name)),
  };
}

/** Returns the line that accepts a change. */
function nameOfChange({ rule, subject }: Change): string {
  return `${rule} ${subject}`;
}
