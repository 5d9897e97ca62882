import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { requiredScopesOf } from "@protoport/auth";
import { NamePatterns } from "@protoport/gateway/options";
import { procedureOf } from "@protoport/gateway/rest";

/**
 * Creates a function that returns all scopes that a procedure (`/package.Service/Method`) requires, or `undefined` for
 * none.
 *
 * @param scopes - space-separated scopes by selector. A selector is a full RPC name, or a prefix with `*`. A full
 * name takes precedence, and then the longest prefix
 */
export function createRequiredScopes(
  scopes: Readonly<Record<string, string>>,
): (procedure: string) => readonly string[] | undefined {
  const patterns = new NamePatterns(Object.entries(scopes));
  return (procedure) => patterns.get(procedure.slice(1).replace("/", "."))?.split(" ");
}

/** RPCs whose option `protoport.auth.v1.required_scopes` requires more than a server requires. */
export interface UncheckedRpcs {
  /** RPCs whose option names scopes that the server does not require. */
  readonly restricted: readonly DescMethod[];
  /** RPCs without scopes in the option or the server, in services where other RPCs have the option. */
  readonly undefined: readonly DescMethod[];
}

/**
 * Returns the RPCs for which a server requires less than the option.
 *
 * @param requiredScopes - returns the scopes that the server requires for a procedure, or `undefined` for none
 * @param isOpen - returns whether a procedure needs no credential
 */
export function findUncheckedScopes(
  services: readonly DescService[],
  requiredScopes: (procedure: string) => readonly string[] | undefined,
  isOpen: (procedure: string) => boolean,
): UncheckedRpcs {
  const described = services.flatMap(({ methods }) => {
    const defined = methods.map((method) => ({ method, scopes: definedScopes(method) }));
    const hasOption = defined.some(({ scopes }) => scopes !== undefined);
    const closed = defined.filter(({ method }) => !isOpen(procedureOf(method)));
    return hasOption ? closed.map((each) => ({ ...each, required: requiredScopes(procedureOf(each.method)) })) : [];
  });
  return {
    restricted: described
      .filter(({ scopes = [], required = [] }) => scopes.some((scope) => !required.includes(scope)))
      .map(({ method }) => method),
    undefined: described
      .filter(({ scopes, required }) => scopes === undefined && required === undefined)
      .map(({ method }) => method),
  };
}

/**
 * Returns the scopes that an RPC's option names, or `undefined` without the option. For an invalid option, returns a
 * scope that no server requires.
 */
function definedScopes(method: DescMethod): readonly string[] | undefined {
  try {
    return requiredScopesOf(method);
  } catch {
    return [""];
  }
}
