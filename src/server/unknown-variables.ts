import { nearestName } from "@protoport/gateway/options";
import { variablePrefix, withoutPrefix } from "./setting-types.ts";

/** Prefixes of variables that belong to this program. A misspelt `TLS_CERT_FILE` would turn TLS off. */
const prefixes = [variablePrefix, "TLS_CERT", "TLS_KEY"];

/**
 * Returns a problem for every unknown variable with a setting's prefix, so that a misspelt setting is not ignored.
 *
 * @param known - the names of all known variables
 */
export function unknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): string[] {
  const setVariables = Object.entries(environment).filter(
    ([name, value]) => prefixes.some((prefix) => name.startsWith(prefix)) && value !== "",
  );
  return setVariables
    .filter(([name, value = ""]) => !known.includes(name) && !isServiceLink(name, value))
    .map(([name]) => `unknown setting "${name}"${suggestionText(name, known)}`);
}

// Compares names without the prefix, so that PLANTSTORE_PORT matches PORT.
function suggestionText(name: string, known: readonly string[]): string {
  const nearest = nearestName(withoutPrefix(name), known.map(withoutPrefix));
  const suggestion = known.find((variable) => withoutPrefix(variable) === nearest || variable === `${name}_FILE`);
  return suggestion === undefined ? "" : `, did you mean "${suggestion}"?`;
}

// Kubernetes passes the addresses of all services to every container. The variables for a service named plantstore or
// plantstore-* have the same prefix as settings.
function isServiceLink(name: string, value: string): boolean {
  return /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) || /^(tcp|udp|sctp):\/\//.test(value);
}
