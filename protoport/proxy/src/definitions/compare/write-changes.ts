import type { PartitionedChanges } from "./accepted-changes.ts";
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
