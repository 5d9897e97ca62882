import type { DescMethod } from "@bufbuild/protobuf";
import { withCode, nearestName } from "@plantstore/http";
import type { OpenApiSecurityRequirement, OpenApiSecurityScheme } from "./open-api-document.ts";

/** The options for {@link createSecurity}. */
export interface SecurityOptions {
  /** The credential kinds, by name. */
  readonly securitySchemes?: Readonly<Record<string, OpenApiSecurityScheme>>;
  /**
   * The alternatives that operations accept. A caller needs all credentials in one alternative. Each credential's value
   * lists the scopes that it needs. `{}` is a call without a credential. Defaults to one alternative, with all
   * credentials in {@link securitySchemes}.
   */
  readonly security?: readonly OpenApiSecurityRequirement[];
  /**
   * Returns an RPC's alternatives, `[]` if it needs no credential, or `undefined` for those in {@link security}.
   * `describeSecurity` from `createBearerAuth` returns such a function.
   */
  readonly describeSecurity?: (method: DescMethod) => readonly OpenApiSecurityRequirement[] | undefined;
}

/** A document's requirements. */
export interface Security {
  /** The requirements for all operations without their own. */
  readonly ofDocument: readonly OpenApiSecurityRequirement[];
  /** Returns an operation's requirements, or `undefined` if they are the same as the document's. */
  readonly ofMethod: (method: DescMethod) => readonly OpenApiSecurityRequirement[] | undefined;
}

/** Creates a document's requirements. @throws TypeError for a credential that `securitySchemes` does not contain */
export function createSecurity({ securitySchemes = {}, security, describeSecurity }: SecurityOptions): Security {
  const names = Object.keys(securitySchemes);
  const all = Object.fromEntries(names.map((name) => [name, []]));
  // An empty array means that no credential is required. Linters report a document without `security`.
  const ofDocument = security ?? (names.length === 0 ? [] : [all]);
  refuseUnknownSchemes(ofDocument, names, "security of createOpenApi");
  const common = JSON.stringify(ofDocument);
  return {
    ofDocument,
    ofMethod(method) {
      const own = describeSecurity?.(method);
      if (own === undefined || JSON.stringify(own) === common) return undefined;
      refuseUnknownSchemes(
        own,
        names,
        `describeSecurity of createOpenApi, for ${method.parent.typeName}.${method.name}`,
      );
      return own;
    },
  };
}

function refuseUnknownSchemes(
  requirements: readonly OpenApiSecurityRequirement[],
  names: readonly string[],
  owner: string,
): void {
  const unknown = requirements.flatMap((requirement) => Object.keys(requirement)).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const nearest = nearestName(unknown, names);
  const hint = nearest === undefined ? `accepted are ${names.join(", ")}` : `did you mean "${nearest}"?`;
  throw withCode(new TypeError(`${owner}: "${unknown}" is not a name of securitySchemes; ${hint}`), "ERR_OPTIONS");
}
