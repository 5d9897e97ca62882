import type { DescService } from "@bufbuild/protobuf";
import { arrayOf, type OptionNames, required } from "@plantstore/http";
import type { ResourceMetadata } from "./protected-resource.ts";

/** `createBearerAuth` options. */
export interface BearerAuthOptions {
  /** The protection space, sent in challenges (RFC 9110 §11.5). */
  readonly realm: string;
  /**
   * Returns the scope that a procedure requires, or several, all of which a token must have, or `undefined` for none.
   * Called once per procedure.
   */
  readonly requiredScope?: ((procedure: string) => string | readonly string[] | undefined) | undefined;
  /**
   * All the server's services, whose RPCs require the scopes in their option `plantstore.auth.v1.required_scopes`.
   * `requiredScope` is called for RPCs without the option. If one RPC in a service has the option, its other RPCs must
   * have it or be open. Calls to other services fail with `Internal`, unless `open` names them.
   */
  readonly services?: readonly DescService[] | undefined;
  /** The procedures (`/pkg.Service/Method`) and services (`pkg.Service`) that need no credential. */
  readonly open?: readonly string[] | undefined;
  /**
   * The protected resource metadata (RFC 9728), whose URL is sent in challenges: the `createResourceMetadata` result,
   * or a document's URL.
   */
  readonly resourceMetadata?: string | Pick<ResourceMetadata, "url" | "urlsByPath"> | undefined;
}

/** All names in {@link BearerAuthOptions}. */
export const bearerAuthOptionNames: OptionNames<BearerAuthOptions> = {
  realm: required,
  requiredScope: true,
  services: arrayOf(),
  open: arrayOf(),
  resourceMetadata: true,
};
