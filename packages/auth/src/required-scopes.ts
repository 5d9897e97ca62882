import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/**
 * The number of the extension `plantstore.auth.v1.required_scopes`, which `proto/` declares. Known by number, because
 * descriptors may lack the imported file.
 */
const extensionNumber = 57386;

/** The number of `RequiredScopes.scopes`. */
const scopesNumber = 1;

/** RFC 6749 §3.3: `scope-token`. */
const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * Returns the scopes that the option `plantstore.auth.v1.required_scopes` of an RPC lists, `[]` if it accepts every
 * valid token; `undefined` if the RPC does not have the option. For `createResourceMetadata` and `createMcp`.
 */
export function requiredScopesOf({ proto: { options } }: DescMethod): readonly string[] | undefined {
  const rules = (options?.$unknown ?? []).filter(
    ({ no, wireType }) => no === extensionNumber && wireType === WireType.LengthDelimited,
  );
  if (rules.length === 0) return undefined;
  return [...new Set(rules.flatMap(({ data }) => readScopes(new BinaryReader(data).bytes())))];
}

/** Reads an encoded RequiredScopes. */
function readScopes(bytes: Uint8Array): readonly string[] {
  const reader = new BinaryReader(bytes);
  const scopes: string[] = [];
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number === scopesNumber && type === WireType.LengthDelimited) scopes.push(reader.string());
    else reader.skip(type, number);
  }
  return scopes;
}

/**
 * Returns the scopes of all RPCs of services by procedure, `undefined` for RPCs without the option.
 *
 * @param isOpen - returns whether a procedure needs no credential, and so no option
 * @throws TypeError for a scope that a token cannot have, and for RPCs without the option if another RPC of their service
 * has it
 */
export function readRequiredScopes(
  services: readonly DescService[],
  isOpen: (procedure: string) => boolean,
): ReadonlyMap<string, readonly string[] | undefined> {
  const byProcedure = new Map<string, readonly string[] | undefined>();
  for (const { typeName, methods } of services) {
    const described = methods.map((method) => ({
      name: `${typeName}.${method.name}`,
      procedure: `/${typeName}/${method.name}`,
      scopes: requiredScopesOf(method),
    }));
    const missing = described.filter(({ scopes, procedure }) => scopes === undefined && !isOpen(procedure));
    if (described.some(({ scopes }) => scopes !== undefined) && missing.length > 0)
      throw servicesProblem(
        `${missing.map(({ name }) => name).join(", ")} must have the option plantstore.auth.v1.required_scopes, as other ` +
          "RPCs of the service do; {} accepts every valid token",
      );
    for (const { name, procedure, scopes } of described) {
      const invalid = scopes?.find((scope) => !scopeToken.test(scope));
      if (invalid !== undefined)
        throw servicesProblem(`${name} requires the scope "${invalid}", which no token can have`);
      byProcedure.set(procedure, scopes);
    }
  }
  return byProcedure;
}

/** Returns the error for what is wrong in the option `services`. */
export function servicesProblem(text: string): TypeError {
  return Object.assign(new TypeError(`option "services" of createBearerAuth: ${text}`), { code: "ERR_OPTIONS" });
}
