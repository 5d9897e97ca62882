import {
  createBearerAuth,
  createResourceMetadata,
  limitRates,
  openTokenVerifier,
  parsePlainTokens,
  principalKey,
  type ResourceMetadata,
  type StaticToken,
  type TokenVerifier,
} from "@protoport/auth";
import type { OperatorLog } from "@protoport/auth/inputs";
import type { CommandOutput } from "@protoport/command-line";
import type { Admit, Endpoint } from "@protoport/gateway";
import type { McpOptions } from "@protoport/gateway/mcp";
import type { OpenApiOptions } from "@protoport/gateway/openapi";
import { procedureOf } from "@protoport/gateway/rest";
import { createRequiredScopes } from "../definitions/index.ts";
import type { AuthenticationSection } from "../settings/index.ts";
import type { ProxySettings } from "./proxy-settings.ts";

/** The MCP endpoint's path. */
export const mcpPath = "/mcp";

const schemeName = "bearerAuth";
const securitySchemes = { [schemeName]: { type: "http", scheme: "bearer" } } as const;

/** The checks that admit or refuse requests, and the files that they watch. */
export interface AccessChecks {
  /** Admits or refuses a request. `undefined` admits all requests. */
  readonly admit: Admit | undefined;
  /** Returns whether a procedure needs no credential. Undefined without authentication. */
  readonly isOpen: ((procedure: string) => boolean) | undefined;
  /** Returns whether a caller's token has the scopes of a tool. `undefined` if no RPC requires a scope. */
  readonly isListed: McpOptions["isListed"] | undefined;
  /** The documents that tell clients where to obtain tokens. */
  readonly endpoints: readonly Endpoint[];
  /** The RPC credentials for the OpenAPI document. Empty if no RPC needs a credential. */
  readonly openApiSecurity: Pick<OpenApiOptions, "describeSecurity" | "securitySchemes">;
  /** Reads the watched files again. */
  readonly reload: () => void;
  /** Stops watching files, and fails requests that wait for a check, such as for an introspection endpoint. */
  readonly close: () => void;
  /** Calls {@link close} as soon as no request waits for a check. */
  readonly closeWhenIdle: () => void;
}

/** Opens the verifier and the rate limits. @throws SettingsProblem if tokens, a file or an issuer are not valid */
export async function openAccessChecks(settings: ProxySettings, output: CommandOutput): Promise<AccessChecks> {
  const { authentication, rateLimit } = settings;
  const verifier = authentication && (await openAccessVerifier(authentication, settings.problemAt, output));
  const resourceMetadata = authentication && openMetadata(authentication, challengedPathsOf(settings));
  const auth =
    authentication &&
    verifier &&
    createBearerAuth(verifier, {
      realm: authentication.realm,
      open: authentication.open,
      requiredScope: createRequiredScopes(authentication.scopes),
      initialScopes: authentication.initialScopes,
      resourceMetadata,
    });
  const isLimited = rateLimit.perPrincipal !== undefined || rateLimit.perAddress !== undefined;
  const limited = limitRates((request) => auth?.admit(request), {
    perPrincipal: rateLimit.perPrincipal,
    perAddress: rateLimit.perAddress,
  });
  const close = (): void => verifier?.close?.();
  const { admit, closeWhenIdle } = countWaiting(limited, close);
  return {
    admit: auth === undefined && !isLimited ? undefined : admit,
    isOpen: auth && ((procedure) => auth.isOpen(procedure)),
    isListed:
      auth && enforcesScopes(authentication)
        ? createToolFilter(authentication.scopes, (procedure) => auth.isOpen(procedure))
        : undefined,
    endpoints: resourceMetadata?.endpoints ?? [],
    openApiSecurity: auth === undefined ? {} : { securitySchemes, describeSecurity: auth.describeSecurity(schemeName) },
    reload: () => void verifier?.reload?.(),
    close,
    closeWhenIdle,
  };
}

/** Counts the requests that wait for `admit`. */
function countWaiting(
  admit: Admit,
  close: () => void,
): Pick<AccessChecks, "closeWhenIdle"> & { readonly admit: Admit } {
  let waiting = 0;
  let isClosing = false;
  const closeIfIdle = (): void => {
    if (isClosing && waiting === 0) close();
  };
  const end = (): void => {
    waiting--;
    closeIfIdle();
  };
  return {
    admit: (request) => {
      const admitted = admit(request);
      if (admitted instanceof Promise) {
        waiting++;
        admitted.then(end, end);
      }
      return admitted;
    },
    closeWhenIdle: () => {
      isClosing = true;
      closeIfIdle();
    },
  };
}

/** Returns the paths that have separate resource metadata: the MCP endpoint's path. */
export function challengedPathsOf({ tools }: ProxySettings): readonly string[] {
  return tools === undefined ? [] : [mcpPath];
}

function openMetadata(
  { realm, publicUrl, jwt, scopes }: AuthenticationSection,
  paths: readonly string[],
): ResourceMetadata | undefined {
  if (publicUrl === undefined) return undefined;
  return createResourceMetadata({
    name: realm,
    publicUrl,
    issuers: jwt.map(({ issuer }) => issuer),
    scopes: [...new Set(Object.values(scopes).flatMap((each) => each.split(" ")))],
    paths,
  });
}

function enforcesScopes({ scopes }: AuthenticationSection): boolean {
  return Object.keys(scopes).length > 0;
}

async function openAccessVerifier(
  authentication: AuthenticationSection,
  problemAt: ProxySettings["problemAt"],
  output: CommandOutput,
): Promise<TokenVerifier> {
  const { tokens, tokenHashesFile, jwt, introspection } = authentication;
  const enforceScopes = enforcesScopes(authentication);
  if (tokens.length + jwt.length === 0 && tokenHashesFile === undefined && introspection === undefined)
    throw problemAt("authentication", "requires tokens, tokenHashesFile, jwt or introspection");
  for (const [at, { keysUrl, keysFile }] of jwt.entries()) {
    if (keysUrl !== undefined && keysFile !== undefined)
      throw problemAt(`authentication.jwt[${at}].keysUrl`, "cannot be combined with keysFile");
  }
  const opened = await openTokenVerifier(
    {
      tokens: tokens.length === 0 ? undefined : toStaticTokens(tokens, problemAt),
      tokenHashesFile,
      jwt: jwt.length === 0 ? undefined : jwt.map((issuer) => ({ ...issuer, enforceScopes })),
      introspection: introspection && { ...introspection, enforceScopes },
    },
    toOperatorLog(output),
  );
  if (opened.kind === "problems") throw problemAt("authentication", `is not valid: ${opened.problems.join("; ")}`);
  return opened.value;
}

function toStaticTokens(tokens: readonly string[], problemAt: ProxySettings["problemAt"]): readonly StaticToken[] {
  const parsed = parsePlainTokens(tokens);
  if (parsed.kind === "value") return parsed.value;
  throw problemAt("authentication.tokens", `are not valid: ${parsed.problems.join("; ")}`);
}

/** Returns a log that writes to the terminal, with fields as JSON. */
function toOperatorLog({ out, err }: CommandOutput): OperatorLog {
  return {
    info: (fields, message) => out(`${message} ${JSON.stringify(fields)}`),
    warn: (fields, message) => err(`${message} ${JSON.stringify(fields)}`),
  };
}

/** Creates a filter that lists only the tools that a caller's token may call. */
function createToolFilter(
  scopes: Readonly<Record<string, string>>,
  isOpen: (procedure: string) => boolean,
): NonNullable<McpOptions["isListed"]> {
  const requiredScopes = createRequiredScopes(scopes);
  return (method, { contextValues }) => {
    const procedure = procedureOf(method);
    const held = contextValues.get(principalKey)?.scopes;
    if (held === "all" || isOpen(procedure)) return true;
    return (requiredScopes(procedure) ?? []).every((scope) => held?.has(scope) === true);
  };
}
