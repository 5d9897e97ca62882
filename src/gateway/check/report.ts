import { describeBinding, type RestBinding } from "../rest/index.ts";
import type { Peer } from "./differences.ts";
import type { Survey } from "./survey.ts";

/** Bindings that are listed below what they have in common, unless all are asked for. */
const listedMax = 5;

const peerNames: Readonly<Record<Peer, string>> = {
  "connect-node": "connect-node",
  "grpc-gateway": "grpc-gateway",
  envoy: "Envoy",
};

/** Writes what was found as text for people. */
export function writeReport(
  file: string,
  { services, bindings, refusals, differences }: Survey,
  { from, all }: { readonly from: readonly Peer[]; readonly all: boolean },
): string {
  const rpcs = services.flatMap((service) => service.methods);
  const unbound = rpcs.length - new Set(bindings.map(({ method }) => method)).size;
  const verdict =
    refusals.length === 0
      ? `It would start: ${count(services.length, "service")} with ${count(bindings.length, "binding")} of REST.`
      : `It would not start, for ${count(refusals.length, "reason")}:`;
  const lines = [
    `${file}: ${count(services.length, "service")}, ${count(rpcs.length, "RPC")}`,
    "",
    verdict,
    ...refusals.flatMap(({ problem, advice }) => [
      "",
      `  ${problem}`,
      ...(advice === undefined ? [] : [`    ${advice}`]),
    ]),
  ];
  if (refusals.length > 0) {
    lines.push("", "rest.rules replaces a rule that you cannot change, and rest.omit leaves an RPC out of REST.");
  }
  if (refusals.length === 0 && unbound > 0) {
    lines.push(`${count(unbound, "RPC")} without a rule: JSON too, by POST /package.Service/Method.`);
  }
  if (differences.length > 0)
    lines.push("", `What is otherwise than with ${listOf(from.map((peer) => peerNames[peer]))}:`);
  for (const found of differences) {
    const { says, advice, from: peers } = found.difference;
    const sources = from.length === 1 ? "" : ` (${peers.map((peer) => peerNames[peer]).join(", ")})`;
    lines.push("", `  ${says}${sources}.`, `    ${advice}`, ...listBindings(found.bindings, bindings, all));
  }
  return lines.join("\n");
}

function listBindings(concerned: readonly RestBinding[], bindings: readonly RestBinding[], all: boolean): string[] {
  const listed = all ? concerned : concerned.slice(0, listedMax);
  const more = concerned.length - listed.length;
  if (more > 0 && concerned.length === bindings.length) return ["    - all bindings"];
  const last = more === 0 ? [] : [`    - and ${more} more, which --all lists`];
  return [...listed.map((binding) => `    - ${describeBinding(binding)}`), ...last];
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function listOf(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
