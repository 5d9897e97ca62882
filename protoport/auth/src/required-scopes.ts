import { isDeepStrictEqual } from "node:util";
import type { DescMethod, DescService, UnknownField } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { withCode } from "@protoport/gateway/errors";

/** The field number of the extension `protoport.auth.v1.required_scopes`, whose file a descriptor set may lack. */
const extensionNumber = 57386;

/** The field number of `RequiredScopes.scopes`. */
const scopesNumber = 1;

/** Matches a `scope-token` (RFC 6749 §3.3). */
const requiredScopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * Returns the scopes that an RPC's option `protoport.auth.v1.required_scopes` lists, or `[]` if the RPC accepts every
 * valid token. Returns `undefined` if the RPC does not have the option. Use the scopes in `createResourceMetadata` and
 * `createMcp`.
 *
 * @throws TypeError if an option with the same number is not a `RequiredScopes`, or has fields that are not known
 */
export function requiredScopesOf({ proto: { options }, parent, name }: DescMethod): readonly string[] | undefined {
  const rules = (options?.$unknown ?? []).filter(({ no }) => no === extensionNumber);
  if (rules.length === 0) return undefined;
  const scopes = rules.map(readScopesOption);
  if (!scopes.includes(undefined)) return [...new Set(scopes.flatMap((each) => each ?? []))];
  throw withCode(
    new TypeError(
      `the option ${extensionNumber} of ${parent.typeName}.${name} must be a protoport.auth.v1.RequiredScopes that ` +
        "contains only scopes",
    ),
    "ERR_OPTIONS",
  );
}

/** Reads a `RequiredScopes`. Returns `undefined` for other values and unknown fields, which could restrict the RPC. */
function readScopesOption({ wireType, data }: UnknownField): readonly string[] | undefined {
  if (wireType !== WireType.LengthDelimited) return undefined;
  const scopes: string[] = [];
  try {
    const reader = new BinaryReader(new BinaryReader(data).bytes());
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      if (number !== scopesNumber || type !== WireType.LengthDelimited) return undefined;
      scopes.push(reader.string(true));
    }
  } catch {
    return undefined;
  }
  return scopes;
}

/**
 * Returns a map from each procedure in the services to its scopes. RPCs without the option have the value `undefined`.
 *
 * @param isOpen - returns whether a procedure needs no credential, and therefore no option
 * @throws TypeError for a scope that a token cannot have, and for the errors of {@link requiredScopesOf}
 * @throws TypeError for RPCs without the option if another RPC in their service has the option
 * @throws TypeError if two descriptors for a service have different RPCs or scopes
 */
export function readRequiredScopes(
  services: readonly DescService[],
  isOpen: (procedure: string) => boolean,
): ReadonlyMap<string, readonly string[] | undefined> {
  const byProcedure = new Map<string, readonly string[] | undefined>();
  const byService = new Map<string, object>();
  for (const { typeName, methods } of services) {
    const described = methods.map((method) => ({
      name: `${typeName}.${method.name}`,
      procedure: `/${typeName}/${method.name}`,
      scopes: requiredScopesOf(method),
    }));
    // The gateway may serve either of two descriptors for a service.
    if (!isDeepStrictEqual(byService.get(typeName) ?? described, described))
      throw servicesProblem(`${typeName} has two descriptors with different RPCs or scopes`);
    byService.set(typeName, described);
    const missing = described.filter(({ scopes, procedure }) => scopes === undefined && !isOpen(procedure));
    if (described.some(({ scopes }) => scopes !== undefined) && missing.length > 0)
      throw servicesProblem(
        `${missing.map(({ name }) => name).join(", ")} must have the option protoport.auth.v1.required_scopes, as other ` +
          "RPCs of the service do; {} accepts every valid token",
      );
    for (const { name, procedure, scopes } of described) {
      const invalid = scopes?.find((scope) => !isScope(scope));
      if (invalid !== undefined)
        throw servicesProblem(`${name} requires the scope "${invalid}", which no token can have`);
      byProcedure.set(procedure, scopes);
    }
  }
  return byProcedure;
}

/** Returns whether a text is a scope that a token can have. */
export function isScope(text: string): boolean {
  return requiredScopeToken.test(text);
}

/** Returns the error for a problem in the option `services`. */
export function servicesProblem(text: string): TypeError {
  return withCode(new TypeError(`option "services" of createBearerAuth: ${text}`), "ERR_OPTIONS");
}
