import { nearestName } from "@plantstore/gateway/options";
import { variablePrefix, withoutPrefix } from "./setting-readers.ts";

/**
 * Returns a problem for every variable that is named like a setting but is not one: otherwise a misspelt setting would
 * be ignored, and the server would run without it.
 *
 * @param known - the variables of all settings
 */
export function unknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): string[] {
  const given = Object.entries(environment).filter(([name, value]) => name.startsWith(variablePrefix) && value !== "");
  return given
    .filter(([name, value = ""]) => !known.includes(name) && !isServiceLink(name, value))
    .map(([name]) => `unknown setting "${name}"${suggestion(name, known)}`);
}

// Without the prefix, since PLANTSTORE_PORT stands for PORT.
function suggestion(name: string, known: readonly string[]): string {
  const nearest = nearestName(withoutPrefix(name), known.map(withoutPrefix));
  const meant = known.find((variable) => withoutPrefix(variable) === nearest);
  return meant === undefined ? "" : `, did you mean "${meant}"?`;
}

/**
 * Returns whether Kubernetes has set a variable: it gives every container the addresses of all services, and the
 * variables of a service named plantstore, or plantstore-*, begin like ours.
 */
function isServiceLink(name: string, value: string): boolean {
  return /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) || /^(tcp|udp|sctp):\/\//.test(value);
}
