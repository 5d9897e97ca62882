import { isDeepStrictEqual } from "node:util";
import type { DescMethod } from "@bufbuild/protobuf";
import { withCode } from "@protoport/gateway/errors";
import { refusePromise } from "@protoport/gateway/options";
import type { BearerAuthOptions } from "./bearer-auth-options.ts";
import { readRequiredScopes, requiredScopesOf, servicesProblem } from "./required-scopes.ts";

type RequirementOptions = Pick<BearerAuthOptions, "requiredScope" | "services" | "open">;

/** The credential and scopes that each procedure requires. */
interface Requirements {
  /** Returns whether a procedure needs no credential. */
  isOpen(this: void, procedure: string): boolean;
  /** Returns the scopes that a token needs. @throws TypeError if `services` is given without the procedure */
  scopesOf(this: void, procedure: string): readonly string[];
  /**
   * Checks that a served RPC requires the same scopes as the RPC in `services`. Services without the option
   * `required_scopes` are not checked.
   *
   * @throws TypeError if `services` lacks the RPC or has it with other scopes
   */
  requireDefined(this: void, method: DescMethod): void;
  /**
   * Checks once that `requiredScope` requires an RPC's scopes if `services` is not given. For calls without a known
   * descriptor, emits one process warning instead if neither option is given and no descriptor was checked.
   *
   * @throws TypeError for an RPC with fewer scopes than its option `required_scopes` lists
   */
  requireChecked(this: void, method: DescMethod | undefined): void;
}

interface Requirement {
  readonly isOpen: boolean;
  /** The scopes that a token must have, or `undefined` if `services` is given without the procedure. */
  readonly scopes: readonly string[] | undefined;
}

/**
 * Returns the credential and scopes that procedures require.
 *
 * @throws TypeError for a name in `open` that names neither a service nor a procedure
 * @throws TypeError for an RPC whose option `required_scopes` is missing or has an invalid scope
 */
export function createRequirements(options: RequirementOptions): Requirements {
  const open = new Set(options.open);
  for (const name of open) requireOpenName(name);
  const isInOpen = (procedure: string): boolean =>
    open.has(procedure) || open.has(procedure.slice(1, procedure.lastIndexOf("/")));
  const defined = readRequiredScopes(options.services ?? [], isInOpen);
  // Grows to at most one entry per procedure, because unknown paths add no entry.
  const requirements = new Map<string, Requirement>();

  const checked = new WeakSet<DescMethod>();
  let isWarned = options.services !== undefined || options.requiredScope !== undefined;

  function readScopes(procedure: string): Requirement["scopes"] {
    const scopes = defined.get(procedure);
    if (scopes !== undefined) return scopes;
    if (options.services !== undefined && !defined.has(procedure)) return undefined;
    const scope = refusePromise(options.requiredScope?.(procedure), "requiredScope must be synchronous");
    return scope === undefined ? [] : [scope].flat();
  }

  function requirementOf(procedure: string): Requirement {
    let requirement = requirements.get(procedure);
    if (requirement === undefined) {
      requirement = { isOpen: isInOpen(procedure), scopes: readScopes(procedure) };
      requirements.set(procedure, requirement);
    }
    return requirement;
  }

  function requireScopes(method: DescMethod): void {
    const procedure = `/${method.parent.typeName}/${method.name}`;
    const { isOpen, scopes = [] } = requirementOf(procedure);
    if (options.services !== undefined || isOpen || !isRestricted(method)) return;
    const listed = requiredScopesOf(method);
    if (listed === undefined ? scopes.length > 0 : listed.every((scope) => scopes.includes(scope))) return;
    throw uncheckedError(procedure);
  }

  return {
    isOpen: (procedure) => requirementOf(procedure).isOpen,
    scopesOf: (procedure) => {
      const { scopes } = requirementOf(procedure);
      if (scopes === undefined) throw missingDescriptorError(procedure);
      return scopes;
    },
    requireDefined: (method) => {
      const procedure = `/${method.parent.typeName}/${method.name}`;
      const scopes = requiredScopesOf(method);
      if (!isRestricted(method) || (scopes !== undefined && isDeepStrictEqual(scopes, defined.get(procedure)))) return;
      throw missingDescriptorError(procedure);
    },
    requireChecked: (method) => {
      if (method === undefined ? isWarned : checked.has(method)) return;
      isWarned = true;
      if (method === undefined) return process.emitWarning(uncheckedWarning);
      requireScopes(method);
      checked.add(method);
    },
  };
}

const uncheckedWarning =
  "createBearerAuth does not check the option required_scopes, because requireChecked was not called: set services, or " +
  "keep the check in the function that wraps admit: Object.assign(wrapper, { requireChecked: auth.admit.requireChecked })";

function missingDescriptorError(procedure: string): TypeError {
  return servicesProblem(
    `the served descriptor of ${rpcNameOf(procedure)} is missing; list all services of the server`,
  );
}

function uncheckedError(procedure: string): TypeError {
  const problem = `the option required_scopes of ${rpcNameOf(procedure)} is not checked`;
  const remedy = "set services of createBearerAuth, or return the scopes from requiredScope";
  return withCode(new TypeError(`${problem}: ${remedy}`), "ERR_OPTIONS");
}

/** Returns whether any RPC in an RPC's service has the option `required_scopes`. */
function isRestricted({ parent }: DescMethod): boolean {
  return parent.methods.some((each) => requiredScopesOf(each) !== undefined);
}

function rpcNameOf(procedure: string): string {
  return procedure.slice(1).replace("/", ".");
}

function requireOpenName(name: unknown): void {
  const problem = openOptionProblem(name);
  if (problem === undefined) return;
  throw withCode(new TypeError(`option "open" of createBearerAuth ${problem}`), "ERR_OPTIONS");
}

/** Returns a problem if a name in `open` cannot match any service or RPC. */
export function openOptionProblem(name: unknown): string | undefined {
  if (typeof name === "string" && validName.test(name)) return undefined;
  const got = typeof name === "string" ? JSON.stringify(name) : typeof name;
  const suggested = typeof name === "string" ? suggest(name) : undefined;
  const hint = suggested === undefined ? "" : `, did you mean "${suggested}"?`;
  return `must name services (package.Service) and RPCs (/package.Service/Method), got ${got}${hint}`;
}

const validName = /^(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|\/[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\/[A-Za-z_]\w*)$/;

/** Returns the corrected name if the only mistake is a slash or a wildcard. */
function suggest(name: string): string | undefined {
  const [, service, method] = /^\/*([\w.]*\w)(?:\/+(?:(\w+)|\*)?|\.\*)?\/*$/.exec(name) ?? [];
  const suggested = method === undefined ? service : `/${service}/${method}`;
  return suggested !== undefined && validName.test(suggested) ? suggested : undefined;
}
