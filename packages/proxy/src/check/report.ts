import type { Survey } from "./survey.ts";

/** Formats the result of a survey. */
export function writeReport(file: string, { services, bindings, problems }: Survey): string {
  const rpcs = services.flatMap((service) => service.methods);
  const lines = [`${file}: ${count(services.length, "service")}, ${count(rpcs.length, "RPC")}`, ""];
  if (problems.length > 0) {
    lines.push(`The gateway would not start, for ${count(problems.length, "reason")}:`, "");
    lines.push(...problems.map((problem) => `  ${problem}`));
    lines.push("", "rest.rules overrides a rule that you cannot change, and rest.omit excludes an RPC from REST.");
    return lines.join("\n");
  }
  lines.push(
    `The gateway would start: ${count(services.length, "service")} with ${count(bindings.length, "REST binding")}.`,
  );
  const unbound = rpcs.length - new Set(bindings.map(({ method }) => method)).size;
  if (unbound > 0) {
    lines.push(`${count(unbound, "RPC")} without a rule: callable as JSON with POST /package.Service/Method.`);
  }
  return lines.join("\n");
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
