import { nearestName } from "@plantstore/gateway/options";
import { variablePrefix, withoutPrefix } from "./setting-readers.ts";

/**
 * Returns a problem for every unknown variable with the prefix of a setting, so that a misspelt setting is not ignored.
 *
 * @param known - the variables of all settings
 */
export function unknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): string[] {
  const set = Object.entries(environment).filter(([name, value]) => name.startsWith(variablePrefix) && value !== "");
  return set
    .filter(([name, value = ""]) => !known.includes(name) && !isServiceLink(name, value))
    .map(([name]) => `unknown setting "${name}"${suggestion(name, known)}`);
}

// Compares names without the prefix, so that PLANTSTORE_PORT matches PORT.
function suggestion(name: string, known: readonly string[]): string {
  const nearest = nearestName(withoutPrefix(name), known.map(withoutPrefix));
  const intended = known.find((variable) => withoutPrefix(variable) === nearest);
  return intended === undefined ? "" : `, did you mean "${intended}"?`;
}

/**
 * Returns whether Kubernetes has set a variable. It passes the addresses of all services to every container, and the
 * variables of a service named plantstore or plantstore-* have the same prefix.
 */
function isServiceLink(name: string, value: string): boolean {
  return /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) || /^(tcp|udp|sctp):\/\//.test(value);
}
