import type { CheckResult } from "./check-definition.ts";
import type { CheckedTools } from "./check-tools.ts";
import type { Definition } from "./definition.ts";

/** Formats the result of a check. */
export function writeReport(
  { name, services }: Definition,
  { bindings, problems, unsupportedOptions, tools }: CheckResult,
): string {
  const rpcs = services.flatMap((service) => service.methods);
  const lines = [`${name}: ${count(services.length, "service")}, ${count(rpcs.length, "RPC")}`, ""];
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
  if (unsupportedOptions.size > 0) {
    lines.push("", "OpenAPI documents of the gateway do not use these options of grpc-gateway:", "");
    for (const [option, [first = "", ...others]] of unsupportedOptions)
      lines.push(`  ${option} of ${first}${others.length > 0 ? ` and ${others.length} more` : ""}`);
  }
  if (tools !== undefined) lines.push("", ...describeTools(tools));
  return lines.join("\n");
}

function describeTools({ names, clientStreams, truncated, unmatched }: CheckedTools): readonly string[] {
  return [
    `${count(names.size, "RPC")} would be tools of AI agents.`,
    ...clientStreams.map((rpc) => `  ${rpc} is not a tool: its client sends a stream`),
    ...[...names].flatMap(([rpc, name]) => (name === rpc.replaceAll(".", "_") ? [] : [`  ${rpc} is the tool ${name}`])),
    ...truncated.map((rpc) => `  ${rpc} has more fields than a tool's schema lists; models can set the others, too`),
    ...unmatched.map((selector) => `  --mcp ${selector} matches no RPC`),
  ];
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
