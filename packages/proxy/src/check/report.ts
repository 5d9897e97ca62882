import type { Survey } from "./survey.ts";

/** Writes what was found as text for people. */
export function writeReport(file: string, { services, bindings, problems }: Survey): string {
  const rpcs = services.flatMap((service) => service.methods);
  const lines = [`${file}: ${count(services.length, "service")}, ${count(rpcs.length, "RPC")}`, ""];
  if (problems.length > 0) {
    lines.push(`It would not start, for ${count(problems.length, "reason")}:`, "");
    lines.push(...problems.map((problem) => `  ${problem}`));
    lines.push("", "rest.rules replaces a rule that you cannot change, and rest.omit leaves an RPC out of REST.");
    return lines.join("\n");
  }
  lines.push(`It would start: ${count(services.length, "service")} with ${count(bindings.length, "binding")} of REST.`);
  const unbound = rpcs.length - new Set(bindings.map(({ method }) => method)).size;
  if (unbound > 0) {
    lines.push(`${count(unbound, "RPC")} without a rule: JSON too, by POST /package.Service/Method.`);
  }
  return lines.join("\n");
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
