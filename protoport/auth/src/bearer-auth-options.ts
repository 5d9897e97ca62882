import type { DescService } from "@bufbuild/protobuf";
import { arrayOf, type OptionNames, required } from "@protoport/gateway/options";
import type { ResourceMetadata } from "./protected-resource.ts";

/** `createBearerAuth` options. */
export interface BearerAuthOptions {
  /** The protection space, sent in challenges (RFC 9110 §11.5). */
  readonly realm: string;
  /** Returns the scope or scopes that a token needs for a procedure, if any. Called once per procedure. */
  readonly requiredScope?: ((procedure: string) => string | readonly string[] | undefined) | undefined;
  /**
   * All the server's services. RPCs require the scopes in their option `protoport.auth.v1.required_scopes`.
   * `requiredScope` is called for RPCs without the option. If any RPC in a service has the option, all RPCs in the
   * service must have the option or be open. Calls to services in neither `services` nor `open` fail with `Internal`.
   * Required if an RPC has the option, unless `requiredScope` returns its scopes.
   */
  readonly services?: readonly DescService[] | undefined;
  /** The procedures (`/pkg.Service/Method`) and services (`pkg.Service`) that need no credential. */
  readonly open?: readonly string[] | undefined;
  /**
   * The scopes that clients request first: the `scope` of 401 challenges. Without the option, MCP clients request all
   * scopes in the metadata document.
   */
  readonly initialScopes?: readonly string[] | undefined;
  /** The `createResourceMetadata` result or the URL of a metadata document (RFC 9728). Challenges contain the URL. */
  readonly resourceMetadata?: string | Pick<ResourceMetadata, "url" | "urlsByPath"> | undefined;
}

/** The option names in {@link BearerAuthOptions}. */
export const bearerAuthOptionNames: OptionNames<BearerAuthOptions> = {
  realm: required,
  requiredScope: true,
  services: arrayOf(),
  open: arrayOf(),
  initialScopes: arrayOf(),
  resourceMetadata: true,
};
