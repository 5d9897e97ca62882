import { refusePromise } from "@plantstore/http";
import type { BearerAuthOptions } from "./bearer-auth-options.ts";
import { openNameProblem } from "./open-names.ts";
import { readRequiredScopes } from "./required-scopes.ts";

/** The options that determine what procedures require. */
type RequirementOptions = Pick<BearerAuthOptions, "requiredScope" | "services" | "open">;

/** One procedure's requirement. */
interface Requirement {
  readonly isOpen: boolean;
  /** The scopes that a token must have, all of them. */
  readonly scopes: readonly string[];
}

/**
 * Returns a function that returns a procedure's requirement.
 *
 * @throws TypeError for a name in `open` that names neither a service nor a procedure, and for the option
 * `required_scopes` of an RPC that is missing or has an invalid scope
 */
export function createRequirements(options: RequirementOptions): (procedure: string) => Requirement {
  const open = new Set(options.open);
  for (const name of open) requireOpenName(name);
  const isOpen = (procedure: string): boolean =>
    open.has(procedure) || open.has(procedure.slice(1, procedure.lastIndexOf("/")));
  const defined = readRequiredScopes(options.services ?? [], isOpen);
  // The number of procedures limits the map size: a path that matches nothing has no procedure.
  const requirements = new Map<string, Requirement>();

  function scopesOf(procedure: string): readonly string[] {
    const scopes = defined.get(procedure);
    if (scopes !== undefined) return scopes;
    const scope = refusePromise(options.requiredScope?.(procedure), "requiredScope must be synchronous");
    return scope === undefined ? [] : [scope];
  }

  return function requirementOf(procedure) {
    let requirement = requirements.get(procedure);
    if (requirement === undefined) {
      requirement = { isOpen: isOpen(procedure), scopes: scopesOf(procedure) };
      requirements.set(procedure, requirement);
    }
    return requirement;
  };
}

function requireOpenName(name: unknown): void {
  const problem = openNameProblem(name);
  if (problem === undefined) return;
  throw Object.assign(new TypeError(`option "open" of createBearerAuth ${problem}`), { code: "ERR_OPTIONS" });
}
