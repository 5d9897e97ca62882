import type { DescMethod } from "@bufbuild/protobuf";
import { withCode, nearestName } from "../http/index.ts";
import type { OpenApiSecurityRequirement, OpenApiSecurityScheme } from "./open-api-document.ts";

/** The options for {@link createSecurity}. */
export interface SecurityOptions {
  /** The security schemes, by name. */
  readonly securitySchemes?: Readonly<Record<string, OpenApiSecurityScheme>>;
  /**
   * The alternative security requirements for operations. A caller needs all credentials in one alternative, each with
   * the listed scopes. `{}` allows calls without a credential. Defaults to one alternative with all credentials in
   * {@link securitySchemes}.
   */
  readonly security?: readonly OpenApiSecurityRequirement[];
  /**
   * Returns an RPC's alternative security requirements. `[]` means that the RPC needs no credential, and `undefined`
   * means that {@link security} applies. `describeSecurity` from `createBearerAuth` creates a function for this option.
   */
  readonly describeSecurity?: (method: DescMethod) => readonly OpenApiSecurityRequirement[] | undefined;
}

/** A document's security requirements. */
export interface Security {
  /** The security requirements for all operations without separate requirements. */
  readonly ofDocument: readonly OpenApiSecurityRequirement[];
  /** Returns an RPC's security requirements, or `undefined` if the document's requirements apply. */
  readonly ofMethod: (method: DescMethod) => readonly OpenApiSecurityRequirement[] | undefined;
}

/** Creates the security requirements. @throws TypeError for a credential that `securitySchemes` does not contain */
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
